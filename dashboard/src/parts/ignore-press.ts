import type { MouseEvent } from 'react'

/** Of a form's button as well: Enter in a field presses that one. Nor is what it lies on pressed. */
export function ignorePress(event: MouseEvent): void {
  event.preventDefault()
  event.stopPropagation()
}
