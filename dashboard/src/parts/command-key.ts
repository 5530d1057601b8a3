/** The key that shortcuts of a program use on the member's keyboard. */
export function commandKey(): string {
  return navigator.userAgent.includes('Mac') ? '⌘' : 'Ctrl'
}
