import { Group, Text } from '@mantine/core'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { formatBytes, formatCount, formatDuration } from '../../../parts/text/format.ts'
import { Icon } from '../../../parts/Icon.tsx'
import rows from '../../../parts/table/DataTable.module.css'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useExpectedRows } from '../form/expected-rows.ts'
import { useExportDeniedReason } from '../ExportGate.tsx'
import classes from './ExportState.module.css'
import { STATUS_LABELS } from '../export-text.ts'
import { type Export, isOpen } from '../exports.ts'
import type { Progress } from './pace.ts'

/** Longer than a busy service or a slow connection usually takes between two pages of rows. */
const STALLED_AFTER_MS = 15_000

/** The status, the progress, and what to do if the export failed. */
export function ExportState({ job, progress }: { job: Export; progress: Progress | undefined }) {
  const { label, icon, color } = STATUS_LABELS[job.status]
  return (
    <>
      <Group gap={5} wrap="nowrap" component="span" display="inline-flex" c={color}>
        <Icon name={icon} size={13} />
        <span>{label}</span>
      </Group>
      {job.status === 'RUNNING' ? (
        <RunningProgress job={job} progress={progress} />
      ) : (
        <span className={`${rows.second} numeric`}>
          <ProgressText job={job} />
        </span>
      )}
      {job.sha256 !== null && (
        <span className={rows.second}>
          SHA-256 <CopyableText text={job.sha256} />
        </span>
      )}
      <Failure job={job} />
      <LastAttempt job={job} />
    </>
  )
}

/** The bar moves while the download does. How many rows are expected is counted only then. */
function RunningProgress({ job, progress }: { job: Export; progress: Progress | undefined }) {
  const isMoving = progress !== undefined && !isStalled(progress)
  const mayCount = useExportDeniedReason('create exports') === null
  const expected = useExpectedRows(job, isMoving && mayCount)
  const sent = Number(job.rowsExported)
  const isKnown = expected !== null && expected > 0 && sent <= expected
  const count = isKnown
    ? `${formatCount(sent)} of about ${rowsText(expected)}`
    : `${rowsText(sent)} so far`
  return (
    <span className={`${rows.second} numeric`}>
      {isMoving && (
        <progress
          className={classes.bar}
          aria-label="Download progress"
          {...(isKnown && { value: sent, max: expected })}
        />
      )}
      {count}
      {rateText(progress)}
    </span>
  )
}

function rowsText(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'row' : 'rows'}`
}

function ProgressText({ job }: { job: Export }) {
  const { status, rowsExported, rowLimit, bytes, truncated, expiresAt, finishedAt } = job
  switch (status) {
    case 'PENDING':
      if (job.cadence !== null) return 'The file will be stored soon'
      return (
        <>
          Ready to download until <TimeText at={expiresAt} style="clock" />
        </>
      )
    case 'SUCCEEDED':
      return [
        rowsText(Number(rowsExported)),
        bytes !== null && formatBytes(Number(bytes)),
        truncated === true && `truncated at ${formatCount(Number(rowLimit))} rows`,
        job.isStored && 'stored for 90 days',
      ]
        .filter(Boolean)
        .join(' · ')
    case 'RUNNING':
    case 'FAILED':
    case 'CANCELED':
      return finishedAt === null ? null : <TimeText at={finishedAt} style="clock" />
    default:
      return status satisfies never
  }
}

function rateText(progress: Progress | undefined): string {
  if (!progress) return ''
  const { seenAtMs, movedAtMs, rowsPerSecond } = progress
  if (isStalled(progress)) {
    return `, no progress for ${formatDuration(seenAtMs - movedAtMs)}. If the download has stopped, start it again.`
  }
  if (rowsPerSecond === null || rowsPerSecond < 1) return ''
  return `, ${formatCount(Math.round(rowsPerSecond))} rows per second`
}

function isStalled({ seenAtMs, movedAtMs }: Progress): boolean {
  return seenAtMs - movedAtMs >= STALLED_AFTER_MS
}

function Failure({ job }: { job: Export }) {
  const { failureSummary, retryHint, status } = job
  if (failureSummary === null || status === 'CANCELED') return null
  return (
    <Text size="xs" component="div" mt={2} maw={420}>
      <Text span inherit c="var(--bad)">
        {failureSummary}
      </Text>{' '}
      {retryHint}
    </Text>
  )
}

/** Why the last download of an open export failed. It can be started again. */
function LastAttempt({ job }: { job: Export }) {
  if (job.lastAttempt === null || !isOpen(job)) return null
  const { at, message } = job.lastAttempt
  return (
    <Text size="xs" component="div" mt={2} maw={420}>
      <Text span inherit c="var(--warn)">
        Last attempt failed <TimeText at={at} style="clock" />.
      </Text>{' '}
      {message}
    </Text>
  )
}
