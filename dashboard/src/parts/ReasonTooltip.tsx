import { Tooltip, type TooltipProps } from '@mantine/core'
import type { ReactElement } from 'react'

type ReasonProps = {
  /** Null if there is nothing to show. */
  reason: string | null
  /** The id of the reason's element, for `aria-describedby`. */
  id: string
  position?: TooltipProps['position']
  children: ReactElement
}

/**
 * Shows a reason on hover, on focus and to screen readers. The element tree is the same with and without
 * a reason, so that the child keeps the focus when the reason changes.
 */
export function ReasonTooltip({ reason, id, position = 'top', children }: ReasonProps) {
  return (
    <>
      <Tooltip
        label={reason}
        disabled={reason === null}
        position={position}
        multiline
        maw={300}
        events={EVENTS}
      >
        {children}
      </Tooltip>
      <span id={id} hidden>
        {reason}
      </span>
    </>
  )
}

const EVENTS = { hover: true, focus: true, touch: true }
