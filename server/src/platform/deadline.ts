/** Rejects with `late()` when the work takes longer; the work itself goes on and its end is ignored. */
export async function withDeadline<T>(
  work: Promise<T>,
  { timeoutMs, late }: { timeoutMs: number; late: () => Error },
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), timeoutMs)
  })
  try {
    return await Promise.race([work, expiry])
  } finally {
    clearTimeout(timer)
  }
}
