import { hash } from 'node:crypto'
import { isConsistent } from '../../ledger/tree/consistency.ts'
import { EMPTY_ROOT } from '../../ledger/tree/merkle.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Clock } from '../../platform/time/clock.ts'
import {
  checkNoteSignature,
  cosign,
  decodeBase64,
  LOG_SIGNATURE,
  parseCheckpoint,
  type SignedCheckpoint,
} from '../../platform/tlog/signed-note.ts'

const PROOF_HASHES_MAX = 63
const HASH_BYTES = 32
const OLD_SIZE = /^old (0|[1-9]\d{0,15})$/
/** Each try that fails means that another request was faster. */
const TRIES_MAX = 5

export type WitnessAnswer = {
  status: 200 | 400 | 403 | 404 | 409 | 422 | 503
  text: string
  contentType?: 'text/x.tlog.size'
}

type WitnessOptions = {
  /** Public keys of the log, of 32 bytes. A checkpoint needs the signature of one. */
  logKeys: readonly Buffer[]
  /** Which origins the keys may sign for. */
  originPrefix: string
  /** The witness's own key. */
  name: string
  publicKey: Buffer
  sign: (bytes: Buffer) => Buffer
  /** Keeps the last checkpoint of each origin. */
  storage: Pick<ObjectStore, 'readTagged' | 'replace'>
  clock: Clock
}

/**
 * A witness of C2SP tlog-witness: it remembers the last checkpoint of each log, and cosigns only one that extends
 * it. So a log can't show different histories to different people without the witness noticing.
 */
export class Witness {
  readonly #options: WitnessOptions

  constructor(options: WitnessOptions) {
    this.#options = options
  }

  /** Answers `POST /add-checkpoint`. */
  async addCheckpoint(body: string): Promise<WitnessAnswer> {
    const request = parseRequest(body)
    if (request === null)
      return refusedAnswer(400, 'The body is not a request to add a checkpoint.')
    const { checkpoint, oldSize } = request
    const { origin, size } = checkpoint
    if (!origin.startsWith(this.#options.originPrefix)) {
      return refusedAnswer(404, 'This witness does not know the origin of the checkpoint.')
    }
    if (!this.#isSigned(checkpoint)) {
      return refusedAnswer(403, 'The checkpoint has no valid signature of a known key.')
    }
    if (oldSize > size) return refusedAnswer(400, 'The old size is larger than the checkpoint.')
    return await this.#record(request)
  }

  #isSigned(checkpoint: SignedCheckpoint): boolean {
    const verdicts = this.#options.logKeys.map((publicKey) =>
      checkNoteSignature(checkpoint, { name: checkpoint.origin, type: LOG_SIGNATURE, publicKey }),
    )
    return verdicts.includes('valid') && !verdicts.includes('forged')
  }

  /** Cosigns only what is stored: another request can't have stored a checkpoint meanwhile. */
  async #record({ checkpoint, oldSize, proof, note }: AddRequest): Promise<WitnessAnswer> {
    const { storage, clock, ...key } = this.#options
    const path = `witness/${hash('sha256', checkpoint.origin, 'hex')}`
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const stored = await storage.readTagged(path)
      const last = stored && parseCheckpoint(stored.bytes.toString())
      if (stored && last?.origin !== checkpoint.origin) {
        return refusedAnswer(
          503,
          'The state of this witness is damaged. Its operator has to restore it.',
        )
      }
      const older = last ?? { size: 0, root: EMPTY_ROOT }
      if (oldSize !== older.size) {
        return { status: 409, text: `${older.size}\n`, contentType: 'text/x.tlog.size' }
      }
      const isEmptyTree = checkpoint.size > 0 || checkpoint.root.equals(EMPTY_ROOT)
      if (!isEmptyTree || !isConsistent(older, checkpoint, proof)) {
        return refusedAnswer(422, 'The checkpoint does not extend the last one.')
      }
      const write = { bytes: Buffer.from(note), tag: stored?.tag ?? null }
      const isNew = stored === null || checkpoint.size > older.size
      if (isNew && (await storage.replace(path, write)) === null) continue
      return { status: 200, text: cosign(checkpoint, key, clock()) }
    }
    return refusedAnswer(503, 'Too many requests for this log. Try again.')
  }
}

type AddRequest = {
  oldSize: number
  proof: readonly Buffer[]
  checkpoint: SignedCheckpoint
  /** The checkpoint as sent. */
  note: string
}

function parseRequest(body: string): AddRequest | null {
  const end = body.indexOf('\n\n')
  if (end < 0) return null
  const [first = '', ...lines] = body.slice(0, end).split('\n')
  const [, size] = OLD_SIZE.exec(first) ?? []
  if (size === undefined || lines.length > PROOF_HASHES_MAX) return null
  const proof = lines.flatMap((line) => {
    const bytes = decodeBase64(line)
    return bytes?.length === HASH_BYTES ? [bytes] : []
  })
  const note = body.slice(end + 2)
  const checkpoint = parseCheckpoint(note)
  if (proof.length !== lines.length || checkpoint === null) return null
  return { oldSize: Number(size), proof, checkpoint, note }
}

function refusedAnswer(status: WitnessAnswer['status'], sentence: string): WitnessAnswer {
  return { status, text: `${sentence}\n` }
}
