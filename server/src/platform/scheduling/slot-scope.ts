import { AsyncLocalStorage } from 'node:async_hooks'

/** A request's slot for the database. */
type HeldSlot = {
  release: () => void
  /** Waits for a slot again. */
  retake: () => Promise<void>
  /** Waits for a permit to use the storage of the archive. */
  takeArchivePermit: () => Promise<Disposable>
  /** Null if another request of the company is making a change. */
  tryTakeTurn: () => Disposable | null
  /** Waits until the company's earlier changes have ended. */
  takeTurn: () => Promise<Disposable>
}

/** Null inside `outsideSlot`. */
const held = new AsyncLocalStorage<HeldSlot | null>()

export function withSlot<T>(slot: HeldSlot, work: () => T): T {
  return held.run(slot, work)
}

/**
 * Runs work that waits for something other than the database, and limits itself. A request gives up its slot
 * meanwhile, so that it delays no request that needs only the database. Not for use inside a transaction.
 */
export async function outsideSlot<T>(work: () => Promise<T>): Promise<T> {
  const slot = held.getStore() ?? null
  if (slot === null) return await work()
  slot.release()
  try {
    return await held.run(null, work)
  } finally {
    await slot.retake()
  }
}

/**
 * Like `outsideSlot`, for work that uses the storage of the archive. A request has a permit for it meanwhile, and gets 503 if
 * it would wait too long. Work without a slot, such as a download, has its own limits.
 */
export async function withArchivePermit<T>(work: () => Promise<T>): Promise<T> {
  const slot = held.getStore() ?? null
  if (slot === null) return await work()
  return await outsideSlot(async () => {
    using _permit = await slot.takeArchivePermit()
    return await work()
  })
}

/**
 * Runs a change that locks the company. The changes of a company run one after another anyway, so a request that
 * waits for other changes gives up its slot meanwhile. Otherwise a few companies could keep all slots waiting for locks.
 */
export async function withChangeTurn<T>(work: () => Promise<T>): Promise<T> {
  const slot = held.getStore() ?? null
  if (slot === null) return await work()
  using turn = new DisposableStack()
  const free = slot.tryTakeTurn()
  if (free) turn.use(free)
  else {
    slot.release()
    try {
      turn.use(await held.run(null, slot.takeTurn))
    } finally {
      await slot.retake()
    }
  }
  return await work()
}
