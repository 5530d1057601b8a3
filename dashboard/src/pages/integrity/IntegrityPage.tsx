import { Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { BROKEN_KEY, forgetRepaired, INTEGRITY_KEY } from '../../api/broken-chains.ts'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSession } from '../../api/session-context.tsx'
import { ArrivalsSection } from './ArrivalsSection.tsx'
import { type Chain, ChainCard } from './ChainCard.tsx'
import { CheckpointsSection } from './CheckpointsSection.tsx'
import { PeriodSection } from './PeriodSection.tsx'
import { RunHistory } from './RunHistory.tsx'
import { POLL_MS, refreshRuns } from './runs.ts'
import { VerifyInstructions } from './VerifyInstructions.tsx'

/** The head of each chain, and its verification. */
export function IntegrityPage() {
  const { workspace } = useSession()
  const chains = useQuery({
    queryKey: INTEGRITY_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/integrity')),
    // Polls while a verification is running.
    refetchInterval: ({ state: { data } }) =>
      data?.chains.some(({ lastRun }) => lastRun?.status === 'RUNNING') ? POLL_MS : false,
  })
  useEffect(() => applyVerdicts(chains.data?.chains ?? []), [chains.data])
  const runs = chains.data?.chains.map(({ lastRun }) => `${lastRun?.id} ${lastRun?.status}`).join()
  useEffect(() => void refreshRuns(), [runs])
  const shown = chainsOf(chains.data?.chains ?? [], workspace?.id ?? null)
  return (
    <>
      <PageHeader
        title="Integrity"
        description="Each event contains the hash of the one before it. Changing, removing or inserting an event breaks the chain, and verification reports where."
      />
      <ErrorBox error={chains.error} onRetry={chains.refetch} />
      <Stack gap="sm">
        {chains.isPending && [1, 2].map((card) => <Skeleton height={104} radius="sm" key={card} />)}
        {shown.map((chain) => (
          <ChainCard chain={chain} key={chain.workspaceId} />
        ))}
      </Stack>
      {workspace ? (
        <>
          <PeriodSection workspaceId={workspace.id} key={workspace.id} />
          <CheckpointsSection workspaceId={workspace.id} />
        </>
      ) : (
        <Text size="sm" className="soft" mt="md">
          To verify a period or see signed checkpoints, select a workspace.
        </Text>
      )}
      <RunHistory />
      <ArrivalsSection />
      <Title order={2} mt="xl" mb={4}>
        Verify it yourself
      </Title>
      <Text size="sm" className="soft" maw={640} mb="sm">
        You don’t have to trust Annals: a JSONL export contains everything needed to recompute the
        hashes.
      </Text>
      <VerifyInstructions />
    </>
  )
}

/** Updates the warning that every page shows while a chain is known to be broken. */
function applyVerdicts(chains: readonly Chain[]): void {
  for (const { lastRun } of chains) {
    // A period that holds says nothing about the rest of the chain.
    if (lastRun?.status === 'HOLDS' && lastRun.from === null) forgetRepaired(lastRun.id)
  }
  void queryClient.invalidateQueries({ queryKey: BROKEN_KEY })
}

/**
 * The chain of the selected workspace, or all of them, followed by that of the system workspace, which is
 * always included.
 */
function chainsOf(chains: readonly Chain[], workspaceId: string | null): Chain[] {
  const isChosen = ({ kind, ...chain }: Chain) =>
    workspaceId === null || kind === 'SYSTEM' || chain.workspaceId === workspaceId
  return chains
    .filter(isChosen)
    .toSorted((a, b) => Number(a.kind === 'SYSTEM') - Number(b.kind === 'SYSTEM'))
}
