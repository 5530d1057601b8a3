/** A timer that fires this late was delayed because our own thread was blocked. */
const BLOCKED_MS = 50

/**
 * Rejects with `late()` if the work takes longer. The work continues, and its result is ignored.
 *
 * After this thread was blocked, timers run before the I/O that arrived meanwhile is read. So pending I/O
 * is read before the work counts as late. Work that needs several responses in a row can split the time
 * into several waits: the time that a blocked thread costs one of them is added to the rest.
 */
export async function withDeadline<T>(
  work: Promise<T>,
  { timeoutMs, late, waits = 1 }: { timeoutMs: number; late: () => Error; waits?: number },
): Promise<T> {
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<never>((_, reject) => {
    const wait = async (left: number, dueAtMs: number): Promise<void> => {
      await readPendingIo()
      if (isOver) return
      if (left === 0) reject(late())
      else if (performance.now() - dueAtMs > BLOCKED_MS) start(left, performance.now())
      else start(left, dueAtMs)
    }
    const start = (left: number, fromMs: number): void => {
      const dueAtMs = fromMs + timeoutMs / waits
      timer = setTimeout(() => void wait(left - 1, dueAtMs), dueAtMs - performance.now())
    }
    start(waits, performance.now())
  })
  try {
    return await Promise.race([work, expiry])
  } finally {
    isOver = true
    clearTimeout(timer)
  }
}

/** Resolves after everything that has arrived on sockets so far is read. */
export async function readPendingIo(): Promise<void> {
  await new Promise(setImmediate)
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
 * Rejects with `dead()` as soon as `isAlive` returns false. `isAlive` is called at every interval unless
 * the response to the work has arrived, and must not throw. The work continues, and its result is ignored.
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
      await readPendingIo()
      // The work can also end during the check, and if several checks overlap, the first one counts.
      if (isOver || (await isAlive()) || isOver) return
      isOver = true
      reject(dead())
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
