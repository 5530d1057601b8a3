import { Group, Loader, Paper, Stack, Text } from '@mantine/core'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatBytes, formatCount } from '../../../parts/text/format.ts'
import { pluralize } from '../../../parts/text/pluralize.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { limitText } from '../export-text.ts'
import { type PreflightResult, useCapabilities } from '../exports.ts'
import { EvidenceNotes } from './EvidenceSwitch.tsx'
import classes from './Preflight.module.css'
import type { usePreflight } from './use-preflight.ts'

/** The estimated size of the export, before it is created. */
export function Preflight({
  missing,
  preflight: { data, error, isFetching },
}: {
  missing: string | null
  preflight: ReturnType<typeof usePreflight>
}) {
  return (
    <Paper className={classes.box} component="section" aria-label="Estimated size">
      <Group justify="space-between" gap="xs">
        <Text size="xs" className="soft">
          Estimated size
        </Text>
        {isFetching && <Loader size={12} aria-label="Counting" />}
      </Group>
      <div role="status">
        {missing === null ? (
          data && !error && <Sizes answer={data} />
        ) : (
          <Text size="sm">{missing}</Text>
        )}
        {missing === null && !data && !error && (
          <Text size="sm" className="soft">
            Counting…
          </Text>
        )}
      </div>
      {missing === null && error && <ErrorBox error={error} />}
    </Paper>
  )
}

function Sizes({ answer }: { answer: PreflightResult }) {
  const { rows, stubs, rowLimit, isEstimate, estimatedBytes } = answer
  const exported = Math.min(Number(rows), Number(rowLimit))
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600} className="numeric">
        {isEstimate && 'About '}
        {pluralize(exported, 'row')}
        {stubs !== '0' && ` and ${pluralize(Number(stubs), 'stub')}`}
        {estimatedBytes !== '0' && `, about ${formatBytes(Number(estimatedBytes))}`}
      </Text>
      <Notes answer={answer} />
    </Stack>
  )
}

function Notes({ answer }: { answer: PreflightResult }) {
  const { rows, stubs, evidence, isCut, rowLimit, needsRestore, fitsDownload } = answer
  const { session } = useSession()
  const { data: capabilities } = useCapabilities()
  const isPlanCut = isCut && rowLimit === capabilities?.rowLimit
  const most = capabilities ? limitText(capabilities.downloadBytesMax) : 'the limit'
  return (
    <Stack gap={6} fz="sm">
      {rows === '0' &&
        (stubs === '0'
          ? 'No events match: the file would be empty.'
          : 'No events match: the file would have only stubs.')}
      <EvidenceNotes answer={answer} />
      {isCut && evidence !== 'COMPLETE' && (
        <div>
          <StatusText tone="warn">{`Truncated: ${formatCount(Number(rows))} rows match.`}</StatusText>{' '}
          {isPlanCut
            ? `The ${session.company.plan} plan exports at most ${formatCount(Number(rowLimit))} rows, starting with the first events of each chain. To export all of them, choose shorter time ranges.`
            : 'Rows beyond your row limit are omitted.'}
        </div>
      )}
      {needsRestore && (
        <div>
          <StatusText tone="warn">Archived data must be restored first.</StatusText> This takes
          minutes to hours. Until then, downloads get a 503 response.
        </div>
      )}
      {!fitsDownload && (
        <div>
          <StatusText tone="warn">{`Larger than ${most}.`}</StatusText> The browser can’t download
          more than that. Use the API command that you get, or choose a shorter time range.
        </div>
      )}
    </Stack>
  )
}
