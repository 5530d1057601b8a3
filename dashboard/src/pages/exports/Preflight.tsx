import { Group, Loader, Paper, Stack, Text } from '@mantine/core'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { formatBytes, formatCount } from '../../parts/format.ts'
import { StatusText } from '../../parts/StatusText.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { limitText } from './export-text.ts'
import { type PreflightAnswer, useCapabilities } from './exports.ts'
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
    <Paper className={classes.box} component="section" aria-label="What it comes to">
      <Group justify="space-between" gap="xs">
        <Text size="xs" className="soft">
          What it comes to
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

function Sizes({ answer }: { answer: PreflightAnswer }) {
  const { rows, rowLimit, isEstimate, estimatedBytes } = answer
  const exported = Math.min(Number(rows), Number(rowLimit))
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600} className="numeric">
        {isEstimate && 'About '}
        {formatCount(exported)} {exported === 1 ? 'row' : 'rows'}
        {exported > 0 && `, about ${formatBytes(Number(estimatedBytes))}`}
      </Text>
      <Notes answer={answer} />
    </Stack>
  )
}

function Notes({ answer }: { answer: PreflightAnswer }) {
  const { rows, isCut, rowLimit, needsRestore, fitsDownload } = answer
  const { session } = useSigned()
  const { data: capabilities } = useCapabilities()
  const isPlanCut = isCut && rowLimit === capabilities?.rowLimit
  const most = capabilities ? limitText(capabilities.downloadBytesMax) : 'a browser takes'
  return (
    <Stack gap={6} fz="sm">
      {rows === '0' && 'No event fits at this moment: the file would be empty.'}
      {isCut && (
        <div>
          <StatusText tone="warn">{`Cut: ${formatCount(Number(rows))} rows fit.`}</StatusText>{' '}
          {isPlanCut
            ? `The plan ${session.company.plan} exports ${formatCount(Number(rowLimit))} rows at most: the first ones of each chain come first. Narrow the time to have all.`
            : 'Your limit leaves the rest out.'}
        </div>
      )}
      {needsRestore && (
        <div>
          <StatusText tone="warn">Archived data is brought back first.</StatusText> That takes
          minutes to hours; the download answers 503 until then.
        </div>
      )}
      {!fitsDownload && (
        <div>
          <StatusText tone="warn">{`Larger than ${most}.`}</StatusText> The dashboard sends no more
          than that. You get a command that downloads it by the API, or narrow the time.
        </div>
      )}
    </Stack>
  )
}
