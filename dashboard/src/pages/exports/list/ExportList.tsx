import { Alert, Button, Group, Select, Skeleton, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { LoadMoreButton } from '../../../parts/table/LoadMoreButton.tsx'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { ExportGate } from '../ExportGate.tsx'
import { ExportRow } from './ExportRow.tsx'
import { namesProject, STATUS_LABELS } from '../export-text.ts'
import { type Export, type ExportBody, useExports } from '../exports.ts'
import { EXPORT_STATUSES } from '../exports-search.ts'
import { POLL_MS, useProgress } from './progress.ts'
import { useProjectNames } from '../form/project-names.ts'
import { useShowExport } from './use-show-export.ts'

const route = getRouteApi('/shell/app/exports')
const ALL = 'ALL'
const STATUS_OPTIONS = [
  { value: ALL, label: 'All statuses' },
  ...EXPORT_STATUSES.map((status) => ({ value: status, label: STATUS_LABELS[status].label })),
]

export function ExportList({
  onNew,
  pollFast,
  onDownload,
}: {
  onNew: (start?: ExportBody) => void
  /** A download was started a moment ago. */
  pollFast: boolean
  onDownload: () => void
}) {
  const { status } = route.useSearch()
  const navigate = route.useNavigate()
  const [notice, setNotice] = useState<string | null>(null)
  const { workspace } = useSession()
  const show = useShowExport()
  const { pages, items: jobs } = useExports({
    status,
    workspaceId: workspace?.id ?? null,
    pollFast,
    fastPollMs: POLL_MS,
  })
  if (pages.isPending) return <ListSkeleton />
  if (pages.error && jobs.length === 0)
    return <ErrorBox error={pages.error} onRetry={pages.refetch} />
  if (jobs.length === 0 && status === undefined)
    return <NoExports onNew={onNew} of={workspace?.name ?? null} />
  const say = (sentence: string, job?: Export) => {
    setNotice(sentence)
    // A new export is at the top of the unfiltered list.
    if (job) show(job)
  }
  return (
    <>
      <Group justify="space-between" mb="xs" gap="xs">
        <Select
          aria-label="Status"
          size="xs"
          w={180}
          allowDeselect={false}
          data={STATUS_OPTIONS}
          value={status ?? ALL}
          onChange={(value) => {
            const chosen = EXPORT_STATUSES.find((name) => name === value)
            void navigate({ search: chosen ? { status: chosen } : {} })
          }}
        />
        <Text size="xs" className="soft">
          {workspace ? `Exports with events from ${workspace.name}` : 'Exports from all workspaces'}
          , newest first
        </Text>
      </Group>
      <Notice text={notice} onClose={() => setNotice(null)} />
      <ErrorBox error={pages.error} />
      {jobs.length === 0 && status ? (
        <Text size="sm" className="soft" py="lg">
          No {STATUS_LABELS[status].label.toLowerCase()} exports. Choose another status.
        </Text>
      ) : (
        <ExportTable jobs={jobs} onNew={onNew} onNotice={say} onDownload={onDownload} />
      )}
      <LoadMoreButton pages={pages}>Show older exports</LoadMoreButton>
    </>
  )
}

function Notice({ text, onClose }: { text: string | null; onClose: () => void }) {
  return (
    <div role="status">
      {text && (
        <Alert
          color="green"
          variant="light"
          mb="sm"
          py="xs"
          title={text}
          withCloseButton
          closeButtonLabel="Close"
          onClose={onClose}
        />
      )}
    </div>
  )
}

function ExportTable({
  jobs,
  ...actions
}: {
  jobs: readonly Export[]
  onNew: (start?: ExportBody) => void
  onNotice: (sentence: string, job?: Export) => void
  onDownload: () => void
}) {
  const { job: marked } = route.useSearch()
  const progress = useProgress(jobs.some(({ status }) => status === 'RUNNING'))
  const projectName = useProjectNames(jobs.some(({ filters }) => namesProject(filters)))
  return (
    <DataTable label="Exports, newest first" columns={['Export', 'Status', 'Requested by']}>
      {jobs.map((job) => (
        <ExportRow
          key={job.id}
          job={job}
          progress={job.status === 'RUNNING' ? progress[job.id] : undefined}
          isMarked={job.id === marked}
          projectName={projectName}
          {...actions}
        />
      ))}
    </DataTable>
  )
}

function NoExports({ onNew, of }: { onNew: () => void; of: string | null }) {
  return (
    <EmptyState icon="export" title={of === null ? 'No exports yet' : `No exports from ${of} yet`}>
      <Text size="sm" className="soft" ta="center" maw={480}>
        Choose events, check the estimated size, and download them as JSONL or CSV. Each row
        includes its hash, so anyone with the file can check it without access to Annals.
      </Text>
      <ExportGate action="create exports">
        <Button size="xs" mt="xs" onClick={() => onNew()}>
          Create export
        </Button>
      </ExportGate>
    </EmptyState>
  )
}

function ListSkeleton() {
  return (
    <Stack gap={6} role="status" aria-label="Loading exports">
      {[1, 2, 3, 4, 5].map((line) => (
        <Skeleton height={56} radius="sm" key={line} />
      ))}
    </Stack>
  )
}
