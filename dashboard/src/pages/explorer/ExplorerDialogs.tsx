import { lazy, Suspense } from 'react'
import { whenConnected } from '../../api/when-connected.ts'
import { useRestoreFocus } from '../../parts/dialog/use-restore-focus.ts'
import type { Names } from './list/columns.ts'
import type { ExplorerSearch } from '../../query/explorer-search.ts'
import type { Chip, Filters } from '../../query/filters.ts'
import type { TimeWindow } from '../../query/time-window.ts'
import type { Change } from './use-explorer.ts'
import type { HotTime } from './explorer-event.ts'

export type DialogName = 'save' | 'export' | 'help'

// Loaded after the page, which opens without them.
const SaveView = lazy(
  whenConnected(async () => ({ default: (await import('./view/SaveView.tsx')).SaveView })),
)
const ExportDialog = lazy(
  whenConnected(async () => ({
    default: (await import('./ExportDialog.tsx')).ExportDialog,
  })),
)
const ShortcutsDialog = lazy(
  whenConnected(async () => ({
    default: (await import('./ShortcutsDialog.tsx')).ShortcutsDialog,
  })),
)

type DialogProps = {
  name: DialogName | null
  onClose: () => void
  search: ExplorerSearch
  filters: Filters
  chips: readonly Chip[]
  timeWindow: TimeWindow
  names: Names
  hotTime: HotTime | null
  change: Change
  /** The link to a view was copied. */
  onLinked: (viewId: string) => void
}

export function ExplorerDialogs(props: DialogProps) {
  const { name, onClose, search, filters, chips, timeWindow, names, hotTime, change, onLinked } =
    props
  useRestoreFocus(name !== null)
  const { workspaceId } = filters
  const workspace = workspaceId && { id: workspaceId, name: names.workspace(workspaceId) }
  return (
    <Suspense>
      {name === 'save' && (
        <SaveView
          onClose={onClose}
          search={search}
          filters={filters}
          timeWindow={timeWindow}
          workspace={workspace || null}
          onSaved={(view, { isLinked }) => {
            if (isLinked) onLinked(view)
            change({ view }, { replace: true })
          }}
        />
      )}
      {name === 'export' && (
        <ExportDialog
          onClose={onClose}
          filters={filters}
          chips={chips}
          timeWindow={timeWindow}
          hotTime={hotTime}
        />
      )}
      {name === 'help' && <ShortcutsDialog onClose={onClose} />}
    </Suspense>
  )
}
