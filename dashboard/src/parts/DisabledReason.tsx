import { cloneElement, type MouseEvent, type ReactElement, useId } from 'react'
import { ignoreClick } from './ignore-click.ts'
import { ReasonTooltip } from './ReasonTooltip.tsx'

/** A button or a similar control. */
type ControlProps = {
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
export function DisabledReason({
  reason,
  children,
}: {
  /** Null enables the control. */
  reason: string | null
  children: ReactElement<ControlProps>
}) {
  const id = useId()
  const disabledProps: ControlProps = {
    disabled: false,
    'data-disabled': true,
    'aria-disabled': true,
    'aria-describedby': id,
    onClick: ignoreClick,
  }
  return (
    <ReasonTooltip reason={reason} id={id}>
      {reason === null ? children : cloneElement(children, disabledProps)}
    </ReasonTooltip>
  )
}
