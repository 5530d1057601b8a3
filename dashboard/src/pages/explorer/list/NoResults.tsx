import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { EmptyResult } from './EmptyResult.tsx'
import type { Chip, Filters } from '../../../query/filters.ts'
import { NoEvents, OnlyArchived } from './NoEvents.tsx'
import type { TimeWindow } from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'

type NoResultsProps = {
  filters: Filters
  chips: readonly Chip[]
  timeWindow: TimeWindow
  change: Change
  onEvent: () => void
}

/** Explains an empty list: no event was ever sent, all are archived, or none matches. */
export function NoResults({ onEvent, ...asked }: NoResultsProps) {
  const { workspaceId } = asked.filters
  const { data } = useChainCount(workspaceId)
  if (data?.events === 0) return <NoEvents workspaceId={workspaceId} onEvent={onEvent} />
  if (data && data.events === data.archived) return <OnlyArchived count={data.archived} />
  return <EmptyResult {...asked} />
}

type ChainCount = { events: number; archived: number }

/** The number of events in all, including archived ones. */
function useChainCount(workspaceId: string | undefined) {
  return useQuery({
    queryKey: ['events', 'at-all', workspaceId ?? null],
    queryFn: async (): Promise<ChainCount> => {
      const { chains } = await unwrap(client.GET('/dashboard/integrity'))
      const own = chains.filter((chain) =>
        workspaceId === undefined ? chain.kind === 'CUSTOMER' : chain.workspaceId === workspaceId,
      )
      return {
        events: own.reduce((sum, { seq }) => sum + seq, 0),
        archived: own.reduce((sum, { archivedSeq }) => sum + archivedSeq, 0),
      }
    },
  })
}
