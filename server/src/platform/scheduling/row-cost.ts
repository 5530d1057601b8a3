import { AsyncLocalStorage } from 'node:async_hooks'
import { chargeCpu, type SliceOwner, TimeSlice } from './time-slice.ts'

/**
 * CPU time of the main thread for the rows of a result: decoding them, and building and serializing values.
 * `pg` decodes rows as they arrive on its socket, so the time can't be measured per request.
 */
const MS_PER_STATEMENT = 0.3
const MS_PER_FIELD = 0.000_7
const MS_PER_BYTE = 0.000_005

const owners = new AsyncLocalStorage<SliceOwner>()

/** Charges the rows that `work` reads from the database to the owner. */
export function withRowOwner<T>(owner: SliceOwner, work: () => T): T {
  return owners.run(owner, work)
}

/** Charges the rows of every page that `pages` reads to the owner. */
export async function* withPageOwner<T>(
  owner: SliceOwner,
  pages: AsyncIterable<T>,
): AsyncGenerator<T, void, void> {
  const iterator = pages[Symbol.asyncIterator]()
  try {
    for (;;) {
      const page = await withRowOwner(owner, () => iterator.next())
      if (page.done === true) return
      yield page.value
    }
  } finally {
    await iterator.return?.()
  }
}

/** The owner of the current read. Null for the service's own reads. */
export function rowOwner(): SliceOwner | null {
  return owners.getStore() ?? null
}

/** For long work on what the current read has found. */
export function rowSlice(): TimeSlice {
  return new TimeSlice(owners.getStore())
}

export function chargeRows(
  owner: SliceOwner,
  { rows, bytes }: { rows: readonly unknown[]; bytes: number },
): void {
  const [first] = rows
  const columns = typeof first === 'object' && first !== null ? Object.keys(first).length : 0
  chargeCpu(owner, rows.length * columns * MS_PER_FIELD)
  chargeBytes(owner, bytes)
}

/** For a result that isn't decoded into rows. */
export function chargeBytes(owner: SliceOwner, bytes: number): void {
  chargeCpu(owner, MS_PER_STATEMENT + bytes * MS_PER_BYTE)
}
