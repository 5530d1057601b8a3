import type { ChainHead } from '../../ledger/event.ts'
import { listChainLinks } from '../../ledger/event-store.ts'
import type { Segment } from '../../ledger/segment/segment-store.ts'
import { type LeafPiece, LeafRun, type LeafRunTree } from '../../ledger/tree/leaf-run.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import { type HashConsumer, segmentProblem } from './verify-archive.ts'
import { type TableSteps, verifyTable } from './verify-table.ts'

/** A part of a chain: consecutive files of the archive, or a run of the table. Threads can send it to each other. */
export type ChainRange = {
  workspaceId: WorkspaceId
  companyId: CompanyId | null
  /** Null if nothing is compared with a tree. */
  tree: LeafRunTree | null
  /** If the first file starts earlier, the number of events before those that are wanted, and the last one's hash. */
  skipped: { seq: number; hash: string } | null
} & ({ kind: 'archive'; head: ChainHead; segments: Segment[] } | TableRange)

type TableRange = {
  kind: 'table'
  /** The event before the range. Null: the one in the table at `fromSeq`. */
  head: ChainHead | null
  fromSeq: number
  /** The stored head of the chain. */
  end: ChainHead
  /** Null: up to the end of the chain. */
  toSeq: number | null
}

/** What a range adds to the chain, if `start` is the event before it. */
export type ConfirmedRange = { start: ChainHead; head: ChainHead; leaves: LeafPiece[] }

/** Returns null if the range isn't certainly intact. */
export type RunRange = (range: ChainRange) => Promise<ConfirmedRange | null>

/**
 * Verifies a part of a chain on its own, with the same checks as `verifyChain`. It only confirms: whatever the reason is
 * that it can't, `verifyChain` finds it and names the first bad event.
 */
export async function verifyRange(
  database: Pick<Database, 'pool' | 'db'>,
  archive: ObjectStore,
  range: ChainRange,
  steps: Pick<TableSteps, 'eventsPerRead'> = {},
): Promise<ConfirmedRange | null> {
  const { workspaceId, tree, skipped } = range
  const { db } = database
  const start = range.head ?? (await findStart(database, range))
  if (start === null) return null
  const leaves = tree && new LeafRun(skipped?.seq ?? start.seq, tree)
  const hashes: HashConsumer = {
    restart: () => {},
    add: (hash) => leaves?.add(hash),
    flush: async () => await leaves?.flush(db, workspaceId),
  }
  const after = skipped && new HashesAfter(hashes, start.seq, skipped)
  const head =
    range.kind === 'archive'
      ? await followFiles(db, archive, range, after ?? hashes)
      : await followRows(database, { ...range, head: start }, { ...steps, hashes })
  if (head === null || after?.isOther) return null
  const pieces = leaves ? await leaves.finish(db, workspaceId) : []
  return pieces && { start, head, leaves: pieces }
}

async function followFiles(
  db: Database['db'],
  archive: ObjectStore,
  range: Extract<ChainRange, { kind: 'archive' }>,
  hashes: HashConsumer,
): Promise<ChainHead | null> {
  const companyId = range.companyId ?? undefined
  let { head } = range
  for (const segment of range.segments) {
    const problem = await segmentProblem(db, archive, { head, segment, hashes, companyId })
    if (problem !== null) return null
    head = { seq: segment.lastSeq, hash: segment.lastHash, lastId: segment.lastId }
    await hashes.flush()
  }
  return head
}

async function followRows(
  database: Pick<Database, 'pool' | 'db'>,
  range: TableRange & { workspaceId: WorkspaceId; head: ChainHead },
  steps: TableSteps,
): Promise<ChainHead | null> {
  const verdict = await verifyTable(database, range, steps)
  return verdict.ok ? verdict.head : null
}

/** The event before a range. The range before this one verifies it, and must end with the same one. */
async function findStart(
  { db }: Pick<Database, 'db'>,
  range: ChainRange,
): Promise<ChainHead | null> {
  if (range.kind === 'archive') return range.head
  const { workspaceId, fromSeq } = range
  const [link, ...others] = await listChainLinks(db, { workspaceId, fromSeq, toSeq: fromSeq })
  if (!link || others.length > 0) return null
  return { seq: link.seq, hash: link.hash, lastId: link.id }
}

/** Passes on the hashes after an event, which must have the expected hash. */
class HashesAfter implements HashConsumer {
  readonly #next: HashConsumer
  readonly #last: { seq: number; hash: string }
  #seq: number
  isOther = true

  constructor(next: HashConsumer, seq: number, last: { seq: number; hash: string }) {
    this.#next = next
    this.#seq = seq
    this.#last = last
  }

  restart(): void {}

  add(hash: Buffer): void {
    this.#seq += 1
    if (this.#seq > this.#last.seq) this.#next.add(hash)
    else if (this.#seq === this.#last.seq) this.isOther = hash.toString('hex') !== this.#last.hash
  }

  async flush(): Promise<void> {
    await this.#next.flush()
  }
}
