import { cloneElement, type MouseEvent, type ReactElement, useId } from 'react'
import { ignorePress } from './ignore-press.ts'
import { WithReason } from './WithReason.tsx'

/** A button, or what is pressed like one. */
type Pressable = {
  disabled?: boolean
  'data-disabled'?: boolean
  'aria-disabled'?: boolean
  'aria-describedby'?: string
  onClick?: (event: MouseEvent) => void
}

/**
 * A button that does nothing as long as there is a reason. The browser's own "disabled" would take it out
 * of the order of the Tab key, and the reason with it: so it keeps the focus, looks disabled, says why
 * below the pointer, under the focus and to a screen reader, and ignores being pressed.
 */
export function Refused({
  reason,
  children,
}: {
  /** Null: go ahead. */
  reason: string | null
  children: ReactElement<Pressable>
}) {
  const id = useId()
  const refusal: Pressable = {
    disabled: false,
    'data-disabled': true,
    'aria-disabled': true,
    'aria-describedby': id,
    onClick: ignorePress,
  }
  return (
    <WithReason reason={reason} id={id}>
      {reason === null ? children : cloneElement(children, refusal)}
    </WithReason>
  )
}
