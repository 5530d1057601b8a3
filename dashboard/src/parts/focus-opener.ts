/**
 * Gives the focus to the button that opened a menu. A dialog notes where the focus was as it opens, to
 * give it back; an item of a menu is gone by then, and the focus would be nowhere.
 */
export function focusOpener(part: Element): void {
  const menu = part.closest('[role=menu], [role=dialog]')
  const opener = document.getElementById(menu?.getAttribute('aria-labelledby') ?? '')
  opener?.focus({ preventScroll: true })
}

/** For whatever holds menus: whoever chooses an item is back at the button before anything opens. */
export function leaveMenu({ target }: { target: EventTarget }): void {
  const item = target instanceof Element ? target.closest('[role=menuitem]') : null
  if (item && item.ariaDisabled !== 'true') focusOpener(item)
}
