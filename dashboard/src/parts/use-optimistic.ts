import { type QueryKey, useMutation } from '@tanstack/react-query'
import { queryClient } from '../api/query-client.ts'

/** What a change comes to in the answer of one query. */
export type Sketch = { queryKey: QueryKey; draw: () => void; takeBack: () => void }

type Change<Input> = {
  send: (input: Input) => Promise<unknown>
  sketch: (input: Input) => readonly Sketch[]
  /** Whatever came of it, the service has the last word. */
  refresh: () => Promise<unknown>
  onDone?: (input: Input) => void
  onRefused?: (input: Input) => void
}

/**
 * A change that hurts nobody while it is not sure: it shows at once, and is taken back when the service
 * refuses it. Answers on their way are dropped, since they would bring back what was before.
 */
export function useOptimistic<Input>({ send, sketch, refresh, ...then }: Change<Input>) {
  return useMutation({
    mutationFn: send,
    onMutate: async (input) => {
      const sketches = sketch(input)
      await Promise.all(
        sketches.map(({ queryKey }) => queryClient.cancelQueries({ queryKey, exact: true })),
      )
      for (const { draw } of sketches) draw()
      return sketches
    },
    onSuccess: (_answer, input) => then.onDone?.(input),
    onError: (_error, input, sketches) => {
      for (const { takeBack } of sketches ?? []) takeBack()
      then.onRefused?.(input)
    },
    onSettled: refresh,
  })
}

/** Nothing is drawn where nothing has come yet. */
export function sketchOf<Data>(queryKey: QueryKey, change: (data: Data) => Data): Sketch {
  let before: Data | undefined
  return {
    queryKey,
    draw: () => {
      before = queryClient.getQueryData<Data>(queryKey)
      if (before !== undefined) queryClient.setQueryData<Data>(queryKey, change(before))
    },
    takeBack: () => {
      if (before !== undefined) queryClient.setQueryData<Data>(queryKey, before)
    },
  }
}

/** The list with one of its things changed. */
export function withChanged<T extends { id: string }>(
  list: readonly T[],
  id: string,
  change: Partial<T>,
): T[] {
  return list.map((one) => (one.id === id ? { ...one, ...change } : one))
}
