import rows from '../../../parts/table/DataTable.module.css'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { useSession } from '../../../api/session-context.tsx'
import { ExportActions } from './ExportActions.tsx'
import classes from './ExportRow.module.css'
import { ExportState } from './ExportState.tsx'
import {
  CADENCE_LABELS,
  EVIDENCE_TEXTS,
  filterText,
  SOURCE_EVENTS,
  timeText,
} from '../export-text.ts'
import type { Export } from '../exports.ts'
import type { Progress } from './pace.ts'
import type { RowActions } from './row-actions.ts'

export function ExportRow({
  job: listed,
  progress,
  isMarked,
  projectName,
  ...actions
}: RowActions & {
  job: Export
  progress: Progress | undefined
  isMarked: boolean
  projectName: (id: string) => string
}) {
  useTimeZone()
  const job = progress?.job ?? listed
  const { name, filters, evidence, createdAt } = job
  const filtered = filterText(filters, projectName)
  const content = <ContentText job={job} />
  return (
    <tr className={`${classes.row} ${isMarked ? classes.marked : ''}`} data-job={job.id}>
      <td>
        <span className={rows.name}>{name ?? content}</span>
        {name !== null && <span className={rows.second}>{content}</span>}
        <span className={`${rows.second} ${classes.filters}`}>
          {[filtered, timeText(filters), EVIDENCE_TEXTS[evidence]].filter(Boolean).join(' · ')}
        </span>
      </td>
      <td className={classes.state}>
        <ExportState job={job} progress={progress} />
      </td>
      <td className={classes.by}>
        <span className={classes.person}>{requesterText(job)}</span>
        <span className={`${rows.second} ${classes.when}`}>
          <TimeText at={createdAt} style="clock" />
        </span>
      </td>
      <td className={`${rows.actions} ${classes.actions}`}>
        <ExportActions job={job} {...actions} />
      </td>
    </tr>
  )
}

function requesterText({ createdBy, cadence }: Export): string {
  if (cadence !== null) return `${CADENCE_LABELS[cadence].label} schedule`
  return createdBy.kind === 'KEY' ? 'API key' : (createdBy.email ?? 'Former member')
}

function ContentText({ job }: { job: Export }) {
  return (
    <>
      {job.format}, {SOURCE_EVENTS[job.source]} from <WorkspaceText job={job} />
    </>
  )
}

function WorkspaceText({ job: { workspaceIds, filters } }: { job: Export }) {
  const { session } = useSession()
  const onlyId = filters.workspaceId ?? (workspaceIds.length === 1 ? workspaceIds[0] : undefined)
  const only = session.workspaces.find(({ id }) => id === onlyId)
  if (only) return only.name
  if (onlyId !== undefined) return 'a workspace'
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  return workspaceIds.length === customers.length
    ? 'all workspaces'
    : `${workspaceIds.length} workspaces`
}
