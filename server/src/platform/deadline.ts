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

/** Rejects with the signal's reason when it aborts. The work continues, and its result is ignored. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return await work
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Rejects with `dead()` as soon as `isAlive` says no; it is asked at every interval and does not
 * throw. The work itself goes on and its end is ignored.
 */
export async function whileAlive<T>(
  work: Promise<T>,
  {
    everyMs,
    isAlive,
    dead,
  }: { everyMs: number; isAlive: () => Promise<boolean>; dead: () => Error },
): Promise<T> {
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const death = new Promise<never>((_, reject) => {
    const ask = async (): Promise<void> => {
      // Unless the work ended while we asked: then nobody shall be told that it died.
      if (!(await isAlive()) && !isOver) reject(dead())
    }
    timer = setInterval(() => void ask(), everyMs)
  })
  try {
    return await Promise.race([work, death])
  } finally {
    isOver = true
    clearInterval(timer)
  }
}
