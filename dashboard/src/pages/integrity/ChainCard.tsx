import { Group, Paper, Progress, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { INTEGRITY_KEY } from '../../api/broken-chains.ts'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { CopyableText } from '../../parts/text/CopyableText.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { Gate } from '../../parts/Gate.tsx'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { TimeText } from '../../parts/time/TimeText.tsx'

export type Chain =
  paths['/dashboard/integrity']['get']['responses'][200]['content']['application/json']['chains'][number]
type Run = NonNullable<Chain['lastRun']>

const refresh = () => queryClient.invalidateQueries({ queryKey: INTEGRITY_KEY })

export function ChainCard({ chain }: { chain: Chain }) {
  const { workspaceId, name, kind, seq, hash, archivedSeq, lastRun } = chain
  const start = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/integrity/runs', { body: { workspaceId } })),
    onSettled: refresh,
  })
  const isRunning = lastRun?.status === 'RUNNING'
  return (
    <Paper
      withBorder
      p="md"
      component="section"
      aria-label={name}
      {...(lastRun?.status === 'BROKEN' && { bd: '1px solid var(--bad)', bg: 'var(--bad-soft)' })}
    >
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <div>
          <Text fw={600}>{name}</Text>
          <Text size="sm" className="soft numeric">
            {kind === 'SYSTEM' && 'Dashboard audit log · '}
            {formatCount(seq)} {seq === 1 ? 'event' : 'events'}
            {archivedSeq > 0 && `, ${formatCount(archivedSeq)} archived`}
          </Text>
        </div>
        <Gate
          permission="integrity.verify"
          action="verify chains"
          otherReason={isRunning ? 'A verification is already running.' : null}
        >
          <BusyButton
            size="xs"
            variant="default"
            flex="none"
            onClick={() => start.mutate()}
            isBusy={start.isPending}
          >
            {isRunning ? 'Verifying…' : 'Verify chain'}
          </BusyButton>
        </Gate>
      </Group>
      <Group gap={6} mt="xs">
        <Text size="xs" className="soft">
          Head
        </Text>
        <CopyableText text={hash} />
      </Group>
      <ErrorBox error={start.error} />
      {lastRun && <RunState run={lastRun} workspaceId={workspaceId} />}
    </Paper>
  )
}

function RunState({ run, workspaceId }: { run: Run; workspaceId: string }) {
  const cancel = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/integrity/runs/{runId}/cancel', {
          params: { path: { runId: run.id } },
        }),
      ),
    onSettled: refresh,
  })
  if (run.status === 'RUNNING') {
    const share = run.total === 0 ? 0 : Math.min(100, (run.checked / run.total) * 100)
    return (
      <Stack gap={4} mt="sm">
        <Progress value={share} aria-label="Verification progress" />
        <Group justify="space-between" align="flex-start" wrap="nowrap">
          <Text size="xs" className="soft numeric" role="status">
            {formatCount(run.checked)} of {formatCount(run.total)} events verified. You can leave
            this page.
          </Text>
          <Gate permission="integrity.verify" action="cancel verifications">
            <BusyButton
              size="compact-xs"
              variant="subtle"
              flex="none"
              isBusy={cancel.isPending}
              onClick={() => cancel.mutate()}
            >
              Cancel verification
            </BusyButton>
          </Gate>
        </Group>
      </Stack>
    )
  }
  return (
    <Stack gap={2} mt="sm" role="status">
      <Text size="sm" fw={500} component="span">
        <Verdict run={run} />
      </Text>
      <Text size="sm">{run.verdict}</Text>
      {run.finishedAt && (
        <Text size="xs" className="soft">
          <TimeText at={run.finishedAt} style="clock" />
        </Text>
      )}
      {run.badEventId && (
        <AnchorLink to="/app/explorer" search={{ workspaceId, event: run.badEventId }}>
          Show event
        </AnchorLink>
      )}
    </Stack>
  )
}

function Verdict({ run: { status } }: { run: Run }) {
  if (status === 'HOLDS') return <StatusText tone="good">The chain holds</StatusText>
  if (status === 'BROKEN') return <StatusText tone="bad">The chain is broken</StatusText>
  if (status === 'CANCELED') return <StatusText tone="neutral">Canceled</StatusText>
  return <StatusText tone="warn">Failed</StatusText>
}
