/** A timer that fires this late was delayed because our own thread was blocked. */
const BLOCKED_MS = 50
/** If the whole machine was paused, a response needs this long after us. */
const GRACE_MS = 100

type DeadlineOptions = { timeoutMs: number; waits?: number }

/**
 * Calls `onLate` after the time, unless it is disposed before.
 *
 * After this thread was blocked, timers run before the I/O that arrived meanwhile is read. So pending I/O
 * is read before anything counts as late, and if the thread was blocked at the end, what it waits for gets a
 * moment more. Work that needs several responses in a row can split the time into several waits: the time
 * that a blocked thread costs one of them is added to the rest.
 */
export function startDeadline(
  { timeoutMs, waits = 1 }: DeadlineOptions,
  onLate: () => void,
): Disposable {
  let isOver = false
  let hasGrace = true
  let timer: NodeJS.Timeout | undefined
  const start = (left: number, dueAtMs: number): void => {
    timer = setTimeout(() => void check(left - 1, dueAtMs), dueAtMs - performance.now())
  }
  const check = async (left: number, dueAtMs: number): Promise<void> => {
    await readPendingIo()
    if (isOver) return
    const nowMs = performance.now()
    const wasBlocked = nowMs - dueAtMs > BLOCKED_MS
    if (left > 0) return start(left, (wasBlocked ? nowMs : dueAtMs) + timeoutMs / waits)
    if (!wasBlocked || !hasGrace) return onLate()
    hasGrace = false
    start(1, nowMs + GRACE_MS)
  }
  start(waits, performance.now() + timeoutMs / waits)
  return {
    [Symbol.dispose]: () => {
      isOver = true
      clearTimeout(timer)
    },
  }
}

/** Rejects with `late()` if the work takes longer. The work continues, and its result is ignored. */
export async function withDeadline<T>(
  work: Promise<T>,
  { late, ...options }: DeadlineOptions & { late: () => Error },
): Promise<T> {
  const { promise: expiry, reject } = Promise.withResolvers<never>()
  using _deadline = startDeadline(options, () => reject(late()))
  return await Promise.race([work, expiry])
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
