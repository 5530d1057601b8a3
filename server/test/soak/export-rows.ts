import type { SoakContext } from './soak-context.ts'

export type ExportSource = 'HOT' | 'ARCHIVED' | 'HOT_AND_ARCHIVED'
export type ExportFormat = 'JSONL' | 'CSV'

type Row = { id: string; seq: number; workspaceId: string; n: unknown }
/** The rows of one workspace, which are contiguous and in chain order. */
type Run = { firstId: string; lastId: string; lastSeq: number }

const CSV_HEADER =
  'id,seq,timestamp,receivedAt,companyId,workspaceId,projectId,category,action,actorId,actorEmail,actorRole,resourceType,resourceId,metadata,traceId,hash,prevHash'

/** Checks the rows of a download one by one, and at the end that none is missing. */
export class ExportRows {
  rowCount = 0
  readonly #soak: SoakContext
  readonly #format: ExportFormat
  readonly #seen: Uint8Array
  readonly #runs = new Map<number, Run>()
  #hasHeader = false

  constructor(soak: SoakContext, format: ExportFormat) {
    this.#soak = soak
    this.#format = format
    // Events in flight when the job was created may be included, later ones may not.
    this.#seen = new Uint8Array(soak.book.count)
  }

  readLine(line: string): void {
    if (this.#format === 'CSV' && !this.#hasHeader) {
      this.#hasHeader = true
      this.#check(line === CSV_HEADER, () => `the CSV begins with ${line}`)
      return
    }
    this.#readRow(this.#format === 'CSV' ? parseCsvRow(line) : parseJsonRow(line))
  }

  /** The rows must include every event of these workspaces that was acknowledged in time. */
  checkComplete(source: ExportSource, acknowledged: Uint8Array, indexes: ReadonlySet<number>) {
    const { book } = this.#soak
    for (let n = 0; n < acknowledged.length; n += 1) {
      const index = book.workspaceOf(n)
      if (acknowledged[n] !== 1 || !indexes.has(index) || this.#seen[n] === 1) continue
      const id = book.idOf(n) ?? ''
      const isElsewhere = this.#liesOutside(source, id, this.#runs.get(index))
      this.#check(isElsewhere, () => `${source} lacks event ${n}, ${id}, acknowledged before`)
    }
  }

  /** Ids ascend along a chain, and the archive holds the beginning of each chain. */
  #liesOutside(source: ExportSource, id: string, run: Run | undefined): boolean {
    if (source === 'HOT_AND_ARCHIVED') return false
    if (!run) return true
    return source === 'HOT' ? id < run.firstId : id > run.lastId
  }

  #readRow({ id, seq, workspaceId, n }: Row): void {
    const { book, world } = this.#soak
    const index = world.indexOf(workspaceId)
    this.rowCount += 1
    const isOurs = book.has(n, index) && (book.idOf(n) ?? id) === id
    if (!this.#check(isOurs, () => `the row ${id} with n ${String(n)} was never sent`)) return
    if (!book.has(n, index)) return
    this.#check(n < this.#seen.length, () => `${id} was sent after the download began`)
    this.#check(this.#seen[n] !== 1, () => `event ${id} appears twice`)
    this.#seen[n] = 1
    const run = this.#runs.get(index)
    const isNext = !run || (seq === run.lastSeq + 1 && id > run.lastId)
    this.#check(isNext, () => `seq ${seq} follows ${run?.lastSeq} in ${workspaceId}`)
    this.#runs.set(index, { firstId: run?.firstId ?? id, lastId: id, lastSeq: seq })
  }

  #check(holds: boolean, describe: () => string): boolean {
    // The final exports check the ledger itself.
    return this.#soak.verdicts.check(this.#soak.isFinal ? 'ledger' : 'exports', holds, describe)
  }
}

function parseJsonRow(line: string): Row {
  const { id, seq, workspaceId, metadata } = JSON.parse(line)
  return { id, seq: Number(seq), workspaceId, n: metadata?.n }
}

/** The first six cells hold no separators, and the soak writes no line breaks into cells. */
function parseCsvRow(line: string): Row {
  const [id = '', seq = '', , , , workspaceId = ''] = line.split(',', 6)
  const n = /""n"":(\d+)/.exec(line)?.[1]
  return { id, seq: Number(seq), workspaceId, n: n === undefined ? undefined : Number(n) }
}
