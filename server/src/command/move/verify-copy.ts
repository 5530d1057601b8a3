import { OperatorError } from '../../errors.ts'
import { type ChainHead, EMPTY_HEAD, headAfter } from '../../ledger/event.ts'
import { listChainRun } from '../../ledger/event-store.ts'
import type { BackedUpHead } from '../../outlet/backup/event-coverage.ts'
import { withClient } from '../../outlet/backup/move/move-ledger.ts'
import { readArchivedHead } from '../../outlet/backup/move/move-store.ts'
import { listHeads } from '../../outlet/backup/snapshot-store.ts'
import { TreeCheck } from '../../outlet/proof/check-tree.ts'
import { SegmentUnreadableError } from '../../outlet/verify/verify-archive.ts'
import { entryProblem, runAfter } from '../../outlet/verify/verify-entry.ts'
import { verifyChain } from '../../outlet/verify/verify-ledger.ts'
import { assertId } from '../../platform/id.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'

const EVENTS_PER_READ = 2_000

type VerifierOptions = {
  source: Database
  target: Database
  archive: ObjectStore
  onEvents: (done: number, total: number) => void
  /** For the operator: something that the move doesn't repair. */
  onNote: (text: string) => void
}

/** Verifies what a move has copied, on the rows of the target. */
export class CopyVerifier {
  readonly #options: VerifierOptions
  /** The end of what is verified in each chain, if the chain is intact. */
  readonly #verified = new Map<string, ChainHead>()
  readonly #faulty = new Set<string>()

  constructor(options: VerifierOptions) {
    this.#options = options
  }

  /** All chains with their tiles and checkpoints, as `annals verify` does. */
  async verifyAll(): Promise<void> {
    const { source, target, onEvents, onNote } = this.#options
    const heads = await withClient(target, listHeads)
    const total = heads.reduce((sum, { seq }) => sum + seq, 0)
    let done = 0
    for (const head of heads) {
      const { workspaceId } = head
      const onProgress = (checked: number) => onEvents(done + checked, total)
      const problem = await this.#problemOf(target, head, onProgress)
      done += head.seq
      if (problem === null) {
        this.#verified.set(workspaceId, await this.#endOf(head))
        continue
      }
      const own = await this.#problemOf(source, head, () => {})
      if (own !== problem) throw wrongCopyError(workspaceId, problem)
      this.#faulty.add(workspaceId)
      onNote(`Workspace ${workspaceId} has the same fault in the source and the copy: ${problem}.`)
    }
  }

  /** What was added since, up to these heads. */
  async verifyRest(heads: readonly BackedUpHead[]): Promise<void> {
    for (const head of heads) {
      if (this.#faulty.has(head.workspaceId)) continue
      const problem = await this.#restProblemOf(head)
      if (problem !== null) throw wrongCopyError(head.workspaceId, problem)
    }
  }

  async #problemOf(
    database: Database,
    head: BackedUpHead,
    onProgress: (checked: number) => void,
  ): Promise<string | null> {
    const { archive, onNote } = this.#options
    const workspaceId = assertId<'workspace'>(head.workspaceId)
    // The signer's state in the archive can be ahead of the copy until the last step.
    const trees = { db: database.db, archive: null, workspaceId, listKeys: async () => [] }
    const hashes = await TreeCheck.open(trees)
    try {
      const verdict = await verifyChain(database, archive, workspaceId, { hashes, onProgress })
      return verdict.ok ? await hashes.finish() : `event ${verdict.seq}: ${verdict.problem}`
    } catch (error) {
      if (!(error instanceof SegmentUnreadableError)) throw error
      onNote(
        `Of workspace ${workspaceId}, only the events in the table were verified: ${error.message}`,
      )
      return await this.#restProblemOf(head)
    }
  }

  async #restProblemOf({
    workspaceId,
    seq,
    hash,
    archivedSeq,
  }: BackedUpHead): Promise<string | null> {
    const { db } = this.#options.target
    const id = assertId<'workspace'>(workspaceId)
    const verified = this.#verified.get(workspaceId) ?? EMPTY_HEAD
    let head = archivedSeq > verified.seq ? await readArchivedHead(db, id) : verified
    for (;;) {
      const next = { workspaceId: id, limit: EVENTS_PER_READ, ...runAfter(head) }
      const { entries, hasMore } = await listChainRun(db, next)
      for (const entry of entries) {
        const problem = entryProblem(head, entry)
        if (problem !== null) return `event ${entry.event.seq}: ${problem}`
        head = headAfter(entry.event)
      }
      if (!hasMore) break
    }
    if (head.seq === seq && head.hash === hash) return null
    return `the chain ends at event ${head.seq}, but its head at ${seq}`
  }

  async #endOf({ workspaceId, seq, hash }: BackedUpHead): Promise<ChainHead> {
    const { db } = this.#options.target
    const id = assertId<'workspace'>(workspaceId)
    if (seq === 0) return EMPTY_HEAD
    const { entries } = await listChainRun(db, { workspaceId: id, afterSeq: seq - 1, limit: 1 })
    const [last] = entries
    // All events are archived.
    if (!last) return await readArchivedHead(db, id)
    return { seq, hash, lastId: last.event.id }
  }
}

function wrongCopyError(workspaceId: string, problem: string): OperatorError {
  return new OperatorError(
    `The copy of workspace ${workspaceId} is wrong: ${problem}. The source accepts events. Move to another empty database, and report this as a bug.`,
  )
}
