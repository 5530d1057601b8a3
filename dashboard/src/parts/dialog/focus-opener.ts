/**
 * Focuses the button that opened a menu. A dialog stores the focus when it opens, to restore it later; by
 * then the menu item is gone, so the focus would be lost.
 */
export function focusOpener(part: Element): void {
  const menu = part.closest('[role=menu], [role=dialog]')
  const opener = document.getElementById(menu?.getAttribute('aria-labelledby') ?? '')
  opener?.focus({ preventScroll: true })
}

/**
 * For a container of menus: choosing an item moves the focus to the menu's button before a dialog opens.
 */
export function focusMenuOpener({ target }: { target: EventTarget }): void {
  const item = target instanceof Element ? target.closest('[role=menuitem]') : null
  if (item && item.ariaDisabled !== 'true') focusOpener(item)
}
