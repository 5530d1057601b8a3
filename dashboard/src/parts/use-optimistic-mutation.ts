import { type QueryKey, useMutation } from '@tanstack/react-query'
import { queryClient } from '../api/query-client.ts'

/** What a mutation changes in the cached response of one query. */
export type Patch = { queryKey: QueryKey; apply: () => void; rollback: () => void }

type Change<Input> = {
  send: (input: Input) => Promise<unknown>
  patches: (input: Input) => readonly Patch[]
  /** Runs after success and failure, so that the page shows what the service has. */
  refresh: () => Promise<unknown>
  onDone?: (input: Input) => void
  onRejected?: (input: Input) => void
}

/**
 * A mutation that shows immediately and is rolled back if the service refuses it. It cancels pending
 * requests of the patched queries, because their responses would show the previous state.
 */
export function useOptimisticMutation<Input>({ send, patches, refresh, ...then }: Change<Input>) {
  return useMutation({
    mutationFn: send,
    onMutate: async (input) => {
      const applied = patches(input)
      await Promise.all(
        applied.map(({ queryKey }) => queryClient.cancelQueries({ queryKey, exact: true })),
      )
      for (const { apply } of applied) apply()
      return applied
    },
    onSuccess: (_answer, input) => then.onDone?.(input),
    onError: (_error, input, applied) => {
      for (const { rollback } of applied ?? []) rollback()
      then.onRejected?.(input)
    },
    onSettled: refresh,
  })
}

/** Does nothing if the query has no data yet. */
export function patchQuery<Data>(queryKey: QueryKey, change: (data: Data) => Data): Patch {
  let before: Data | undefined
  return {
    queryKey,
    apply: () => {
      before = queryClient.getQueryData<Data>(queryKey)
      if (before !== undefined) queryClient.setQueryData<Data>(queryKey, change(before))
    },
    rollback: () => {
      if (before !== undefined) queryClient.setQueryData<Data>(queryKey, before)
    },
  }
}

/** Returns a copy of the list with one item changed. */
export function withChanged<T extends { id: string }>(
  list: readonly T[],
  id: string,
  change: Partial<T>,
): T[] {
  return list.map((one) => (one.id === id ? { ...one, ...change } : one))
}
