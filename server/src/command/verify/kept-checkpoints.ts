import { constants, existsSync } from 'node:fs'
import { access, open, readFile, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { OperatorError } from '../../errors.ts'
import type { KeptCheckpoint } from '../../outlet/proof/check-tree.ts'
import { isRecord, parseStoredObject, storedJson } from '../../outlet/proof/stored-json.ts'
import { parseId, type WorkspaceId } from '../../platform/id.ts'
import { parseCheckpoint } from '../../platform/tlog/signed-note.ts'
import type { VerifyFinding, WorkspaceResult } from './workspace-result.ts'

/** A signed checkpoint whose events were verified, and when the chain was last verified from its first event on. */
type VerifiedCheckpoint = KeptCheckpoint & { wholeChainAt: string }

const VERSION = 1
/** Room for 100,000 workspaces. */
const BYTES_MAX = 100 * 1_024 * 1_024
const MODE = 0o600

/**
 * The file of `annals verify --since`: the last signed checkpoint of each workspace whose events were verified. The
 * operator keeps it where someone who can change the ledger can't write.
 */
export class KeptCheckpoints {
  readonly #path: string
  readonly #kept: Map<WorkspaceId, VerifiedCheckpoint>

  private constructor(path: string, kept: Map<WorkspaceId, VerifiedCheckpoint>) {
    this.#path = path
    this.#kept = kept
  }

  /** A file that doesn't exist yet has no checkpoints. */
  static async open(path: string): Promise<KeptCheckpoints> {
    return new KeptCheckpoints(path, await readFileOf(path))
  }

  get(workspaceId: WorkspaceId): VerifiedCheckpoint | null {
    return this.#kept.get(workspaceId) ?? null
  }

  /** Workspaces that are gone, even if someone has deleted what was signed too, unless an operator accepted it. */
  findLost(
    workspaces: readonly { id: WorkspaceId }[],
    accepted: ReadonlySet<WorkspaceId>,
  ): (VerifyFinding & { workspaceId: WorkspaceId })[] {
    const existing = new Set(workspaces.map(({ id }) => id))
    for (const workspaceId of accepted) this.#kept.delete(workspaceId)
    return [...this.#kept]
      .filter(([workspaceId]) => !existing.has(workspaceId))
      .map(([workspaceId, { size }]) => {
        const text = `workspace ${workspaceId}: ${this.#path} has its checkpoint of ${size} events, but the workspace is missing from the database`
        return { kind: 'LOST', workspaceId, seq: null, eventId: null, text }
      })
  }

  /**
   * Keeps the checkpoints of the chains that are intact, and the earlier ones of the others. Replaces the file as a whole,
   * so that an interrupted run leaves the old one.
   */
  async save(results: readonly WorkspaceResult[], now: Date): Promise<void> {
    for (const { workspaceId, checkpoint, skipped } of results) {
      const last = this.get(workspaceId)
      if (checkpoint === null || checkpoint.size < (last?.size ?? 0)) continue
      const wholeChainAt = last && skipped > 0 ? last.wholeChainAt : now.toISOString()
      this.#kept.set(workspaceId, { ...checkpoint, wholeChainAt })
    }
    const entries = [...this.#kept].map(([id, kept]) => {
      return [id, { wholeChainAt: kept.wholeChainAt, note: kept.note }]
    })
    const bytes = storedJson({ version: VERSION, checkpoints: Object.fromEntries(entries) })
    const next = `${this.#path}.new`
    try {
      const file = await open(next, 'w', MODE)
      try {
        await file.writeFile(bytes)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(next, this.#path)
    } catch (error) {
      throw unusable(this.#path, error)
    }
  }
}

async function readFileOf(path: string): Promise<Map<WorkspaceId, VerifiedCheckpoint>> {
  const kept = new Map<WorkspaceId, VerifiedCheckpoint>()
  const bytes = await readUnlessMissing(path)
  if (bytes === null) return kept
  const value = parseStoredObject(bytes)
  const checkpoints = value?.['checkpoints']
  if (value?.['version'] !== VERSION || !isRecord(checkpoints)) throw damaged(path)
  for (const [id, entry] of Object.entries(checkpoints)) {
    const workspaceId = parseId<'workspace'>(id)
    const checkpoint = parseEntry(entry)
    if (workspaceId === null || checkpoint === null) throw damaged(path)
    kept.set(workspaceId, checkpoint)
  }
  return kept
}

async function readUnlessMissing(path: string): Promise<Buffer | null> {
  try {
    // The result needs a place, so a missing folder is an error before hours of work.
    await access(dirname(path), constants.W_OK)
    const { size } = await stat(path)
    if (size > BYTES_MAX) throw damaged(path)
    return await readFile(path)
  } catch (error) {
    if (error instanceof OperatorError) throw error
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isMissing && existsSync(dirname(path))) return null
    throw unusable(path, error)
  }
}

function parseEntry(entry: unknown): VerifiedCheckpoint | null {
  if (!isRecord(entry)) return null
  const { note, wholeChainAt } = entry
  if (typeof note !== 'string' || typeof wholeChainAt !== 'string') return null
  const time = new Date(wholeChainAt)
  const parsed = parseCheckpoint(note)
  if (parsed === null || Number.isNaN(time.getTime())) return null
  const { origin, size, root } = parsed
  return { origin, size, root, note, wholeChainAt: time.toISOString() }
}

function unusable(path: string, error: unknown): OperatorError {
  const reason = error instanceof Error ? error.message : String(error)
  return new OperatorError(`Can't use ${path} for --since: ${reason}`)
}

function damaged(path: string): OperatorError {
  return new OperatorError(
    `${path} is not a file that annals verify --since has written. To verify every event and write a new one, move it away.`,
  )
}
