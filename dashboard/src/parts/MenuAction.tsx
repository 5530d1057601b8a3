import { Menu } from '@mantine/core'
import { type ReactNode, useId } from 'react'
import { ReasonTooltip } from './ReasonTooltip.tsx'

type ActionProps = {
  /** Why the item is disabled. Null if it is enabled. */
  reason: string | null
  isDanger?: boolean
  rightSection?: ReactNode
  onClick: () => void
  children: ReactNode
}

/** A menu item. The arrow keys also reach disabled items, which show the reason. */
export function MenuAction({
  reason,
  isDanger = false,
  rightSection,
  onClick,
  children,
}: ActionProps) {
  const id = useId()
  return (
    <ReasonTooltip reason={reason} id={id} position="left">
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
    </ReasonTooltip>
  )
}
