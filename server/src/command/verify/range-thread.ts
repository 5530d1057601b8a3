import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import type { ArchivePlace } from '../../open-archive.ts'
import type { ChainRange, ConfirmedRange } from '../../outlet/verify/verify-range.ts'
import { cacheCompiledCode } from '../../platform/compile-cache.ts'
import { loadBundles } from '../../platform/load-bundles.ts'
import type { Address } from '../../platform/pg/server-address.ts'

/** What a thread needs to open its own connection and the archive. */
export type RangeThreadData = { address: Address; archive: ArchivePlace }

/** Null if the range isn't certainly intact, or couldn't be verified. */
export type RangeAnswer = ConfirmedRange | null

/** The worker thread of `range-threads.ts`. Receives a range and sends one answer for each. */
async function start(port: NonNullable<typeof parentPort>, data: RangeThreadData): Promise<void> {
  cacheCompiledCode()
  await loadBundles()
  // Loaded now, because the cache and the bundles must come first.
  const [{ openArchiveAt }, { readArchiveId }, { verifyRange }, logs, { Database }, servers] =
    await Promise.all([
      import('../../open-archive.ts'),
      import('../../outlet/archive/archive-identity-store.ts'),
      import('../../outlet/verify/verify-range.ts'),
      import('../../platform/logger.ts'),
      import('../../platform/pg/database.ts'),
      import('../../platform/pg/servers.ts'),
    ])
  const database = new Database({
    connection: new servers.ServerList(data.address),
    role: 'annals_serving',
    connectionsMax: 1,
    name: 'annals verify',
    logger: logs.createLogger('warn', 'stderr'),
  })
  const readId = () => readArchiveId(database.db)
  const archive = openArchiveAt(data.archive, { readArchiveId: readId })
  const answer = async (range: ChainRange): Promise<RangeAnswer> =>
    await verifyRange(database, archive, range).catch(() => null)
  port.on('message', (range: ChainRange) => {
    void answer(range).then((confirmed) => port.postMessage(confirmed, []))
  })
}

assert(parentPort !== null, 'a worker thread')
const data: RangeThreadData = workerData
await start(parentPort, data)
