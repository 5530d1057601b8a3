import { Tooltip, type TooltipProps } from '@mantine/core'
import type { ReactElement } from 'react'

type ReasonProps = {
  /** Null: there is nothing to say. */
  reason: string | null
  /** Of the sentence, for what it describes. */
  id: string
  position?: TooltipProps['position']
  children: ReactElement
}

/**
 * Says a reason below the pointer, under the focus and to a screen reader. The same parts are there with
 * one and without, so what has the focus keeps it when the reason comes or goes.
 */
export function WithReason({ reason, id, position = 'top', children }: ReasonProps) {
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
