import { Group, Paper, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { requestRun } from '../../api/broken-chains.ts'
import type { paths } from '../../api/schema.d.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { CopyableText } from '../../parts/text/CopyableText.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { Gate } from '../../parts/Gate.tsx'
import { RunState } from './RunState.tsx'
import { refreshIntegrity } from './runs.ts'

export type Chain =
  paths['/dashboard/integrity']['get']['responses'][200]['content']['application/json']['chains'][number]

export function ChainCard({ chain }: { chain: Chain }) {
  const { workspaceId, name, kind, seq, hash, archivedSeq, lastRun } = chain
  const start = useMutation({
    mutationFn: () => requestRun(workspaceId),
    onSettled: refreshIntegrity,
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
      {lastRun && <RunState run={lastRun} />}
    </Paper>
  )
}
