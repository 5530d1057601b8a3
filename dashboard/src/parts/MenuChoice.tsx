import { Menu } from '@mantine/core'
import { type ReactNode, useId } from 'react'
import { WithReason } from './WithReason.tsx'

type ChoiceProps = {
  /** Why it cannot be chosen; null: it can. */
  reason: string | null
  isDanger?: boolean
  rightSection?: ReactNode
  onClick: () => void
  children: ReactNode
}

/** An item of a menu. What cannot be chosen is passed by the arrow keys as well, and says why. */
export function MenuChoice({
  reason,
  isDanger = false,
  rightSection,
  onClick,
  children,
}: ChoiceProps) {
  const id = useId()
  return (
    <WithReason reason={reason} id={id} position="left">
      {reason === null ? (
        <Menu.Item
          onClick={onClick}
          rightSection={rightSection}
          {...(isDanger && { color: 'red' })}
        >
          {children}
        </Menu.Item>
      ) : (
        <Menu.Item
          aria-disabled
          rightSection={rightSection}
          aria-describedby={id}
          closeMenuOnClick={false}
          c="var(--mantine-color-disabled-color)"
        >
          {children}
        </Menu.Item>
      )}
    </WithReason>
  )
}
