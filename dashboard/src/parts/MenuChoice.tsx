import { Menu, Tooltip } from '@mantine/core'
import { type ReactNode, useId } from 'react'

type ChoiceProps = {
  /** Why it cannot be chosen; null: it can. */
  reason: string | null
  isDanger?: boolean
  onClick: () => void
  children: ReactNode
}

/** An item of a menu. What cannot be chosen is passed by the arrow keys as well, and says why. */
export function MenuChoice({ reason, isDanger = false, onClick, children }: ChoiceProps) {
  const id = useId()
  if (reason === null) {
    return (
      <Menu.Item onClick={onClick} {...(isDanger && { color: 'red' })}>
        {children}
      </Menu.Item>
    )
  }
  return (
    <>
      <Tooltip label={reason} position="left" multiline maw={260} events={EVENTS}>
        <Menu.Item
          aria-disabled
          aria-describedby={id}
          closeMenuOnClick={false}
          c="var(--mantine-color-disabled-color)"
        >
          {children}
        </Menu.Item>
      </Tooltip>
      <span id={id} hidden>
        {reason}
      </span>
    </>
  )
}

const EVENTS = { hover: true, focus: true, touch: true }
