import { Group, List, Paper, SegmentedControl, Skeleton, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { useSession } from '../../api/session-context.tsx'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { formatLocal } from '../../parts/time/time.ts'
import { shortZoneName, useTimeZone } from '../../parts/time/time-zone.ts'
import { ArrivalChart } from './ArrivalChart.tsx'
import { type Arrivals, findSilences, type Silence } from './silences.ts'
import { WebhookGaps } from './WebhookGaps.tsx'

const DAY_MS = 86_400_000
const PERIODS = [
  { value: '1', label: '24 hours' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
]

/** Whether a workspace has received its events without interruption, and still has all of them. */
export function ArrivalsSection() {
  const { workspace } = useSession()
  const zone = shortZoneName(useTimeZone())
  const [days, setDays] = useState('1')
  return (
    <section aria-label="Completeness">
      <Group justify="space-between" align="flex-end" mt="xl" mb="sm">
        <div>
          <Title order={2} mb={4}>
            Completeness
          </Title>
          <Text size="sm" className="soft" maw={640}>
            Events by the time Annals received them ({zone}), compared with the period before.
          </Text>
        </div>
        <SegmentedControl
          size="xs"
          aria-label="Period"
          data={PERIODS}
          value={days}
          onChange={setDays}
        />
      </Group>
      {workspace ? (
        <ArrivalsCard workspaceId={workspace.id} days={Number(days)} />
      ) : (
        <Text size="sm">Choose a workspace at the top of the page.</Text>
      )}
    </section>
  )
}

function ArrivalsCard({ workspaceId, days }: { workspaceId: string; days: number }) {
  const timeZone = useTimeZone()
  const arrivals = useQuery({
    queryKey: ['arrivals', workspaceId, days, timeZone],
    queryFn: () => {
      const nowMs = Date.now()
      const from = new Date(nowMs - days * DAY_MS).toISOString()
      const to = new Date(nowMs).toISOString()
      const query = { workspaceId, from, to, timeZone }
      return unwrap(client.GET('/dashboard/integrity/arrivals', { params: { query } }))
    },
  })
  return (
    <Paper withBorder p="md" mt="sm">
      <ErrorBox error={arrivals.error} onRetry={arrivals.refetch} />
      {arrivals.isPending && <Skeleton height={260} radius="sm" />}
      {arrivals.data && <ArrivalsResult arrivals={arrivals.data} workspaceId={workspaceId} />}
    </Paper>
  )
}

function ArrivalsResult({ arrivals, workspaceId }: { arrivals: Arrivals; workspaceId: string }) {
  const silences = findSilences(arrivals, Date.parse(arrivals.to))
  const summary = totalText(arrivals)
  return (
    <>
      <ArrivalChart arrivals={arrivals} silences={silences} summary={summary} />
      <List size="sm" mt="sm" spacing={6} listStyleType="none">
        <List.Item>
          {summary}{' '}
          {sumOf(arrivals.counts) > 0 && (
            <AnchorLink
              to="/app/explorer"
              underline="always"
              search={{
                workspaceId,
                range: 'allTime',
                receivedFrom: arrivals.from,
                receivedTo: arrivals.to,
                sort: 'receivedAt',
              }}
            >
              Show in order of receipt
            </AnchorLink>
          )}
        </List.Item>
        <List.Item>
          <SequenceText sequence={arrivals.sequence} />
        </List.Item>
        <List.Item>
          {silences.length === 0 && <NoSilences arrivals={arrivals} />}
          {silences.map((silence) => (
            <SilenceText key={silence.fromMs} silence={silence} workspaceId={workspaceId} />
          ))}
        </List.Item>
        <List.Item>{lateText(arrivals.late)}</List.Item>
        <WebhookGaps workspaceId={workspaceId} />
      </List>
    </>
  )
}

function totalText({ counts, previousCounts, from, to, hotSince }: Arrivals): string {
  const [now, before] = [counts, previousCounts].map(sumOf)
  const lengthMs = Date.parse(to) - Date.parse(from)
  const isCut = Date.parse(hotSince) > Date.parse(from) - lengthMs
  const note = isCut ? ' Archived events aren’t counted.' : ''
  return `${eventsText(now ?? 0)} received, ${formatCount(before ?? 0)} in the period before.${note}`
}

function SequenceText({ sequence }: Pick<Arrivals, 'sequence'>) {
  if (sequence === null) return 'All events of this workspace are archived, or there are none.'
  const { firstSeq, lastSeq, missing } = sequence
  if (firstSeq === lastSeq) {
    const [tone, state] =
      missing === 0 ? (['good', 'present'] as const) : (['bad', 'missing'] as const)
    return <StatusText tone={tone}>{`Event ${formatCount(firstSeq)} is ${state}`}</StatusText>
  }
  const range = `events ${formatCount(firstSeq)} to ${formatCount(lastSeq)}`
  if (missing === 0) return <StatusText tone="good">{`None of the ${range} is missing`}</StatusText>
  return (
    <StatusText tone="bad">{`${formatCount(missing)} of the ${range} ${missing === 1 ? 'is' : 'are'} missing`}</StatusText>
  )
}

function NoSilences({ arrivals }: { arrivals: Arrivals }) {
  if (sumOf(arrivals.previousCounts) > 0) return <StatusText tone="good">No silences</StatusText>
  return (
    <StatusText tone="neutral">
      Silences can’t be detected: the period before has no events to compare with
    </StatusText>
  )
}

function SilenceText({ silence, workspaceId }: { silence: Silence; workspaceId: string }) {
  const { fromMs, toMs, before } = silence
  return (
    <div>
      <StatusText tone="warn">
        {`Silent from ${formatLocal(fromMs, 'clock')} to ${formatLocal(toMs, 'clock')}`}
      </StatusText>
      , while {eventsText(before)} arrived at that time in the period before.{' '}
      <AnchorLink
        to="/app/explorer"
        underline="always"
        search={{
          workspaceId,
          from: new Date(fromMs).toISOString(),
          to: new Date(toMs).toISOString(),
        }}
      >
        Show events
      </AnchorLink>
    </div>
  )
}

function lateText(late: number): string {
  if (late === 0) return 'Every timestamp is within 5 minutes of the time of receipt.'
  return `${eventsText(late)} ${late === 1 ? 'has a timestamp' : 'have timestamps'} more than 5 minutes away from the time of receipt.`
}

function eventsText(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'event' : 'events'}`
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0)
}
