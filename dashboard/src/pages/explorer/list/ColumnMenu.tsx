import { ActionIcon, NativeSelect, Popover, Stack } from '@mantine/core'
import { Icon } from '../../../parts/Icon.tsx'
import { COLUMN_NAMES, type ColumnName, COLUMNS } from './columns.ts'
import classes from './EventList.module.css'
import { readSort, type Sort, sortPatch } from '../../../query/received.ts'
import type { Change } from '../use-explorer.ts'
import { DENSITIES, useDensity } from './use-density.ts'
import { PAGE_SIZES, usePageSize } from './use-page-size.ts'

/** Chooses the columns and the order, which the URL stores, and the density and page size, which the browser remembers. */
export function ColumnMenu({
  columns,
  sort,
  change,
}: {
  /** Null if the rows have none. */
  columns: readonly ColumnName[] | null
  sort: Sort
  change: Change
}) {
  const label = columns ? 'Columns, order, density and page size' : 'Order, density and page size'
  return (
    <Popover position="bottom-end" shadow="md" trapFocus returnFocus>
      <Popover.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={label} title={label}>
          <Icon name="columns" size={14} />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown aria-label={label}>
        <Stack gap={6}>
          {columns && <ColumnChecks columns={columns} change={change} />}
          <NativeSelect
            size="xs"
            mt={columns ? 6 : 0}
            label="Sort by"
            data={[
              { value: 'timestamp', label: 'Time' },
              { value: 'receivedAt', label: 'Received' },
            ]}
            value={sort}
            onChange={({ currentTarget: { value } }) =>
              change(sortPatch(readSort(value)), { replace: true })
            }
          />
          <DensitySelect />
          <PageSizeSelect />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

function ColumnChecks({ columns, change }: { columns: readonly ColumnName[]; change: Change }) {
  const toggle = (name: ColumnName, isShown: boolean) => {
    const chosen = COLUMN_NAMES.filter((other) =>
      other === name ? isShown : columns.includes(other),
    )
    if (chosen.length === 0) return
    const unsorted = name === 'received' && !isShown ? sortPatch('timestamp') : {}
    change({ columns: chosen.join(','), ...unsorted }, { replace: true })
  }
  return COLUMN_NAMES.map((name) => (
    <label className={classes.column} key={name}>
      <input
        type="checkbox"
        checked={columns.includes(name)}
        onChange={(event) => toggle(name, event.currentTarget.checked)}
      />
      {COLUMNS[name].label}
    </label>
  ))
}

function DensitySelect() {
  const { density, setDensity } = useDensity()
  return (
    <NativeSelect
      size="xs"
      mt={6}
      label="Density"
      data={[
        { value: 'comfortable', label: 'Comfortable' },
        { value: 'compact', label: 'Compact' },
      ]}
      value={density}
      onChange={({ currentTarget: { value } }) =>
        setDensity(DENSITIES.find((name) => name === value) ?? 'comfortable')
      }
    />
  )
}

function PageSizeSelect() {
  const { pageSize, setPageSize } = usePageSize()
  return (
    <NativeSelect
      size="xs"
      mt={6}
      label="Events per page"
      description="More load as you scroll."
      data={PAGE_SIZES.map(String)}
      value={String(pageSize)}
      onChange={(event) => setPageSize(Number(event.currentTarget.value))}
    />
  )
}
