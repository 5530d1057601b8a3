import { ActionIcon, Popover, Stack } from '@mantine/core'
import { Icon } from '../../../parts/Icon.tsx'
import { COLUMN_NAMES, type ColumnName, COLUMNS } from './columns.ts'
import classes from './EventList.module.css'
import type { Change } from '../use-explorer.ts'

/** Chooses the columns, which the URL stores. */
export function ColumnMenu({
  columns,
  change,
}: {
  columns: readonly ColumnName[]
  change: Change
}) {
  const toggle = (name: ColumnName, isShown: boolean) => {
    const chosen = COLUMN_NAMES.filter((other) =>
      other === name ? isShown : columns.includes(other),
    )
    if (chosen.length > 0) change({ columns: chosen.join(',') }, { replace: true })
  }
  return (
    <Popover position="bottom-end" shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label="Columns" title="Columns">
          <Icon name="columns" size={14} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Stack gap={6}>
          {COLUMN_NAMES.map((name) => (
            <label className={classes.column} key={name}>
              <input
                type="checkbox"
                checked={columns.includes(name)}
                onChange={(event) => toggle(name, event.currentTarget.checked)}
              />
              {COLUMNS[name].label}
            </label>
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}
