import { cloneElement, type MouseEvent, type ReactElement, useId } from 'react'
import { ignorePress } from './ignore-press.ts'
import { WithReason } from './WithReason.tsx'

/** A button or a similar control. */
type Pressable = {
  disabled?: boolean
  'data-disabled'?: boolean
  'aria-disabled'?: boolean
  'aria-describedby'?: string
  onClick?: (event: MouseEvent) => void
}

/**
 * Disables a control as long as there is a reason. The `disabled` attribute would remove it from the tab
 * order, and the reason with it. So the control keeps the focus, looks disabled, ignores clicks, and
 * shows the reason on hover, on focus and to screen readers.
 */
export function Refused({
  reason,
  children,
}: {
  /** Null enables the control. */
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
