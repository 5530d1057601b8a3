import type { MouseEvent } from 'react'

/**
 * Also prevents Enter in a field from submitting the form, and clicks on the elements around the button.
 */
export function ignoreClick(event: MouseEvent): void {
  event.preventDefault()
  event.stopPropagation()
}
