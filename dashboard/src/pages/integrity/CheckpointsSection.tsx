import { Button, CopyButton, Paper, Skeleton, Text, Title, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { INTEGRITY_KEY } from '../../api/broken-chains.ts'
import { client, unwrap } from '../../api/client.ts'
import type { paths } from '../../api/schema.d.ts'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { WarningBox } from '../../parts/message/WarningBox.tsx'
import { DataTable } from '../../parts/table/DataTable.tsx'
import rows from '../../parts/table/DataTable.module.css'
import { CopyableText } from '../../parts/text/CopyableText.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { shorten } from '../../parts/text/shorten.ts'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { formatRelative } from '../../parts/time/time.ts'
import { formatDay } from '../../parts/time/utc-day.ts'
import { TimeText } from '../../parts/time/TimeText.tsx'
import classes from './CheckpointsSection.module.css'

type History =
  paths['/dashboard/integrity/checkpoints']['get']['responses'][200]['content']['application/json']
type Latest = NonNullable<History['latest']>
type Checkpoint = History['days'][number]

const DAYS_SHOWN = 5
const POLL_MS = 2_000

/** The signed checkpoints of a chain: the newest one, and the last one of each day. */
export function CheckpointsSection({ workspaceId }: { workspaceId: string }) {
  const history = useQuery({
    queryKey: [...INTEGRITY_KEY, 'checkpoints', workspaceId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/integrity/checkpoints', { params: { query: { workspaceId } } }),
      ),
    // Polls until the first events are signed.
    refetchInterval: ({ state: { data } }) =>
      data?.latest === null && data.isSigning && data.refusal === null ? POLL_MS : false,
  })
  return (
    <section aria-label="Signed checkpoints">
      <Title order={2} mt="xl" mb={4}>
        Signed checkpoints
      </Title>
      <Text size="sm" className="soft" maw={640} mb="sm">
        A checkpoint is a signed statement of the number of events and the root of the tree over
        them. Keep a copy elsewhere: it later reveals any change to the events that it covers.
      </Text>
      <Paper withBorder p="md">
        <ErrorBox error={history.error} onRetry={history.refetch} />
        {history.isPending && <Skeleton height={120} radius="sm" />}
        {history.data && <CheckpointHistory history={history.data} />}
      </Paper>
    </section>
  )
}

function CheckpointHistory({
  history: { latest, isSigning, refusal, days },
}: {
  history: History
}) {
  return (
    <>
      {refusal !== null && (
        <WarningBox title="The signer refuses to sign this chain">
          {`${refusal.charAt(0).toUpperCase()}${refusal.slice(1)}. Contact the operator of this service.`}
        </WarningBox>
      )}
      {latest ? (
        <LatestCheckpoint latest={latest} />
      ) : (
        <Text size="sm">
          {isSigning
            ? 'The events of this workspace are not signed yet. This takes a few seconds.'
            : 'This service can’t sign checkpoints, because the operator has not set up an archive.'}
        </Text>
      )}
      {latest && days.length > 0 && <DayTable latest={latest} days={days} />}
    </>
  )
}

function LatestCheckpoint({ latest }: { latest: Latest }) {
  const { size, signedAt, root, vkey, note, witnesses } = latest
  return (
    <dl className={classes.facts}>
      <Fact name="Events covered">
        <span className="numeric">{formatCount(size)}</span>
      </Fact>
      <Fact name="Signed">
        <TimeText at={signedAt} style="clock" />{' '}
        <span className="soft">{formatRelative(Date.parse(signedAt), Date.now())}</span>
      </Fact>
      <Fact name="Root">
        <CopyableText text={root} />
      </Fact>
      <Fact name="Key">
        <CopyableText text={vkey} />
      </Fact>
      {witnesses.length > 0 && (
        <Fact name="Witnesses">
          {witnesses.map((name) => (
            <div key={name}>
              <StatusText tone="neutral">{`Cosigned by ${name}`}</StatusText>
            </div>
          ))}
        </Fact>
      )}
      <Fact name="Checkpoint">
        <CopyButton value={note}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy checkpoint'}
            </Button>
          )}
        </CopyButton>
      </Fact>
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function DayTable({ latest, days }: { latest: Latest; days: readonly Checkpoint[] }) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? days : days.slice(0, DAYS_SHOWN)
  return (
    <>
      <DataTable
        label="Last checkpoint of each day"
        columns={['Day (UTC)', 'Events covered', 'New since the day before', 'Root']}
        className={classes.days}
      >
        {[latest, ...shown].map((checkpoint, index) => (
          <DayRow key={checkpoint.signedAt} checkpoint={checkpoint} before={days[index] ?? null} />
        ))}
      </DataTable>
      {days.length > DAYS_SHOWN && (
        <Button size="xs" variant="default" mt="sm" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'Show fewer days' : `Show ${days.length + 1} days`}
        </Button>
      )}
    </>
  )
}

function DayRow({ checkpoint, before }: { checkpoint: Checkpoint; before: Checkpoint | null }) {
  const { size, root, note, signedAt } = checkpoint
  const day = formatDay(Date.parse(signedAt))
  return (
    <tr>
      <td>{day}</td>
      <td className="numeric" data-label="Events covered">
        {formatCount(size)}
      </td>
      <td className="numeric" data-label="New">
        {before ? formatCount(size - before.size) : '–'}
      </td>
      <td data-label="Root">
        <Tooltip label={root} withinPortal>
          <span className="mono">{shorten(root)}</span>
        </Tooltip>
      </td>
      <td className={rows.actions}>
        <CopyButton value={note}>
          {({ copied, copy }) => (
            <Button
              size="compact-xs"
              variant="subtle"
              onClick={copy}
              aria-label={copied ? 'Copied' : `Copy checkpoint of ${day}`}
            >
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </td>
    </tr>
  )
}
