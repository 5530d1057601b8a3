import type { Annals } from '../../../../../sdk/src/annals.ts'
import { AnnalsError } from '../../../../../sdk/src/client/errors.ts'

/** Other clients may have stored events in between. */
const PAGES_MAX = 3

/** The sequence number of a stored event. Null if it can't be read, such as with a write-only key. */
export async function findSeq(
  annals: Annals,
  id: string,
  signal: AbortSignal,
): Promise<number | null> {
  return (await findSeqs(annals, [id], signal)).get(id) ?? null
}

/** The sequence numbers of events that were stored together. The events are stored, so errors are ignored. */
export async function findSeqs(
  annals: Annals,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, number>> {
  const found = new Map<string, number>()
  try {
    // Later events of a chain have higher ids.
    const sorted = ids.toSorted()
    const [first] = sorted
    const last = sorted.at(-1)
    if (first === undefined || last === undefined) return found
    const { seq, workspaceId } = await annals.events.get(first, { signal })
    found.set(first, seq)
    if (first === last) return found
    let pages = 0
    for await (const { data } of annals.events.feed({ workspaceId, after: seq, signal }).pages()) {
      for (const event of data) found.set(event.id, event.seq)
      pages += 1
      if (pages === PAGES_MAX || data.some(({ id }) => id >= last)) break
    }
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error
  }
  return found
}
