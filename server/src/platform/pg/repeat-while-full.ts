/** Repeats a statement that processes at most `limit` rows, as long as it finds that many. */
export async function repeatWhileFull(
  { limit, timesMax, signal }: { limit: number; timesMax: number; signal: AbortSignal },
  statement: () => Promise<number>,
): Promise<void> {
  for (let times = 0; times < timesMax && !signal.aborted; times += 1) {
    if ((await statement()) < limit) return
  }
}
