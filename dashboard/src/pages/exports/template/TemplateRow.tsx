import { Group } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import rows from '../../../parts/table/DataTable.module.css'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { ExportGate } from '../ExportGate.tsx'
import classes from '../list/ExportRow.module.css'
import { CADENCE_LABELS, filterText, SOURCE_EVENTS, timeText } from '../export-text.ts'
import { refreshExports } from '../exports.ts'
import { runTemplate, type Template } from './templates.ts'
import { TemplateActions } from './TemplateActions.tsx'
import { useShowExport } from '../list/use-show-export.ts'

export function TemplateRow({
  template,
  projectName,
}: {
  template: Template
  projectName: (id: string) => string
}) {
  const { session } = useSession()
  const run = useMutation({
    mutationFn: () => runTemplate(template.id),
    onSuccess: refreshExports,
  })
  const show = useShowExport()
  const { name, workspaceId, body, owner, updatedAt, isUsable, unusableFields } = template
  const { source, format, filters = {} } = body
  const workspace = session.workspaces.find(({ id }) => id === workspaceId)
  return (
    <tr className={classes.row}>
      <td>
        <span className={rows.name}>{name}</span>
        {!isUsable && (
          <span className={rows.second}>
            <StatusText tone="warn">Can’t be run.</StatusText> It was saved by another version of
            Annals and has unknown fields: {unusableFields.join(', ')}. Edit it and save it again.
          </span>
        )}
        <ScheduleText template={template} />
        <ErrorBox error={run.error} />
      </td>
      <td className={classes.state}>
        {format}, {SOURCE_EVENTS[source]} from {workspace?.name ?? 'all workspaces'}
        <span className={`${rows.second} ${classes.filters}`}>
          {[
            filterText(filters, projectName),
            body.savedExplorerViewId !== undefined && 'filters of a saved view',
            timeText(filters),
            body.evidence === 'COMPLETE' && 'proof that nothing is missing',
          ]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </td>
      <td className={classes.by}>
        <span className={classes.person}>{owner?.email ?? 'Former member'}</span>
        <span className={`${rows.second} ${classes.when}`}>
          <TimeText at={updatedAt} style="clock" />
        </span>
      </td>
      <td className={`${rows.actions} ${classes.actions}`}>
        <Group gap={4} wrap="nowrap" justify="flex-end">
          <ExportGate action="run templates">
            <BusyButton
              size="xs"
              variant="default"
              disabled={!isUsable}
              isBusy={run.isPending}
              onClick={() => run.mutate(undefined, { onSuccess: show })}
            >
              Run template
            </BusyButton>
          </ExportGate>
          <TemplateActions template={template} />
        </Group>
      </td>
    </tr>
  )
}

function ScheduleText({ template: { schedule } }: { template: Template }) {
  if (schedule === null) return null
  return (
    <span className={rows.second}>
      {CADENCE_LABELS[schedule.cadence].label} export, next at{' '}
      <TimeText at={schedule.nextRunAt} style="clock" />
      {schedule.problem !== null && (
        <>
          {' '}
          <StatusText tone="warn">{schedule.problem}</StatusText>
        </>
      )}
    </span>
  )
}
