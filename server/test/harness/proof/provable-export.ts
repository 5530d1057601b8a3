import { createHash, createHmac } from 'node:crypto'
import { canonicalJson } from '../../../src/ledger/canonical.ts'
import { base64, createNoteKey, inclusionPath, type NoteKey, signCheckpoint } from './naive-log.ts'

type PartName = 'actor' | 'metadata' | 'resource'
const PARTS: readonly PartName[] = ['actor', 'metadata', 'resource']

/** A row of a JSONL export. */
export type Row = {
  id: string
  seq: number
  timestamp: string
  receivedAt: string
  companyId: string
  workspaceId: string
  projectId: string | null
  category: string
  action: string
  actor: object | null
  resource: object | null
  metadata: object | null
  traceId: string | null
  hash: string
  prevHash: string
  sealed: Partial<Record<PartName, string>>
  salts: Partial<Record<PartName, string>>
}

const START_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
export const COMPANY = '018f0000-0000-7000-8000-00000000c001'
export const WORKSPACE = '018f0000-0000-7000-8000-00000000a001'
export const OTHER_WORKSPACE = '018f0000-0000-7000-8000-00000000a002'
const PROJECT = '018f0000-0000-7000-8000-00000000b001'

/** The time of an event of `createRows`. */
export function timeOf(seq: number): string {
  return new Date(START_MS + seq * MINUTE_MS).toISOString()
}

/** A sealed chain with one event per minute, of different shapes. Every third event is about billing. */
export function createRows(count: number, workspaceId = WORKSPACE): Row[] {
  const rows: Row[] = []
  for (let seq = 1; seq <= count; seq += 1) {
    const id = `019b0000-0000-7000-8000-${seq.toString(16).padStart(12, '0')}`
    const row: Row = {
      id,
      seq,
      timestamp: timeOf(seq),
      receivedAt: new Date(Date.parse(timeOf(seq)) + 5).toISOString(),
      companyId: COMPANY,
      workspaceId,
      projectId: seq % 4 === 0 ? PROJECT : null,
      category: seq % 3 === 0 ? 'billing' : 'auth',
      action: seq % 5 === 0 ? 'say "hi" \\ \u0001 grüß\u{1f600}' : 'user.login',
      actor: seq % 7 === 0 ? null : { email: `ada${seq}@example.com`, id: 'u1' },
      resource: seq % 2 === 0 ? { id: `r${seq}`, type: 'file' } : null,
      metadata: { '10': seq, '9': [1.5, -0.25, 1e21, true, null], nested: { a: 'é', b: {} } },
      traceId: seq % 6 === 0 ? null : '4bf92f3577b34da6a3ce929d0e0e4736',
      hash: '',
      prevHash: rows.at(-1)?.hash ?? '0'.repeat(64),
      sealed: {},
      salts: {},
    }
    rows.push(resealRow(row))
  }
  return rows
}

/** New commitments, salts and hash for what the row contains now. */
export function resealRow(row: Row): Row {
  const sealed: Row['sealed'] = {}
  const salts: Row['salts'] = {}
  for (const name of PARTS) {
    if (row[name] === null) continue
    const salt = createHash('md5').update(`${name} ${row.seq}`).digest()
    const message = `annals/v1/${name}\0${canonicalJson(row[name])}`
    salts[name] = salt.toString('hex')
    sealed[name] = createHmac('sha256', salt).update(message).digest('hex')
  }
  return rehashRow({ ...row, sealed, salts })
}

export function rehashRow(row: Row): Row {
  return {
    ...row,
    hash: createHash('sha256')
      .update(`\0${coreTextOf(row)}`)
      .digest('hex'),
  }
}

export function coreTextOf(row: Row): string {
  const { actor: _actor, resource: _resource, metadata: _metadata, ...others } = row
  const { hash: _hash, salts: _salts, ...core } = others
  return canonicalJson({ v: 1, ...core })
}

/** Recomputes everything from the given index on, like someone who owns the database. */
export function rechainRows(rows: readonly Row[], from = 0): Row[] {
  const rechained = rows.slice(0, from)
  for (const row of rows.slice(from)) {
    const seq = rechained.length + 1
    const prevHash = rechained.at(-1)?.hash ?? '0'.repeat(64)
    rechained.push(resealRow({ ...row, seq, prevHash }))
  }
  return rechained
}

/** A line as Annals writes it. */
export function lineOf(row: object): string {
  const fields = Object.entries(row).map(([name, value]) => `"${name}":${canonicalJson(value)}`)
  return `{${fields.join(',')}}\n`
}

export function stubOf(row: Row): object {
  const { actor: _actor, resource: _resource, metadata: _metadata, salts: _salts, ...core } = row
  const { hash, ...others } = core
  return { stub: true, ...others, hash }
}

export function leavesOf(rows: readonly Row[]): Buffer[] {
  return rows.map(({ hash }) => Buffer.from(hash, 'hex'))
}

export function ledgerKey(workspaceId = WORKSPACE): NoteKey {
  return createNoteKey(`annals.example/${workspaceId}`)
}

export type Ledger = {
  workspaceId: string
  /** All events of the workspace. */
  rows: readonly Row[]
  key: NoteKey
}

type ManifestOptions = {
  evidence?: string
  format?: string
  filters?: object
  /** How many events of the ledger are signed. */
  size?: number
  /** Adds the event before the first one of the file. */
  hasBefore?: boolean
  /** Of an export without lines: the last event before it. All events of the ledger by default. */
  beforeSeq?: number
  /** Adds the event after the last one of the file. */
  hasAfter?: boolean
  snapshotAt?: string | null
  keys?: readonly NoteKey[]
}

export type ManifestWorkspace = {
  workspaceId: string
  origin: string
  vkey: string
  firstSeq: number | null
  lastSeq: number | null
  checkpoint: string
  lastLeafProof: { index: number; size: number; hashes: string[] } | null
  before?: object
  after?: object
  afterLeafProof?: object
}

export type Manifest = {
  version: number
  jobId: string
  format: string
  filters: object
  rows: number
  sha256: string
  evidence: string
  snapshotAt?: string | null
  workspaces: ManifestWorkspace[]
}

/** The manifest of a file, whose lines of each ledger are the events with these sequence numbers. */
export function manifestOf(
  file: string,
  ledgers: readonly (Ledger & { seqs: readonly number[] })[],
  options: ManifestOptions = {},
): Manifest {
  const lines = file.split('\n').slice(0, -1)
  return {
    version: 1,
    jobId: '018f0000-0000-7000-8000-00000000e001',
    format: options.format ?? 'JSONL',
    filters: options.filters ?? {},
    rows: lines.filter((line) => !line.startsWith('{"stub"')).length,
    sha256: createHash('sha256').update(file).digest('hex'),
    evidence: options.evidence ?? 'MEMBERSHIP',
    ...(options.snapshotAt !== undefined && { snapshotAt: options.snapshotAt }),
    workspaces: ledgers.map((ledger) => manifestWorkspace(ledger, options)),
  }
}

function manifestWorkspace(
  { workspaceId, rows, key, seqs }: Ledger & { seqs: readonly number[] },
  options: ManifestOptions,
): ManifestWorkspace {
  const { size = rows.length, hasBefore = false, hasAfter = false, keys = [key] } = options
  const leaves = leavesOf(rows).slice(0, size)
  const firstSeq = seqs[0] ?? null
  const lastSeq = seqs.at(-1) ?? null
  const beforeSeq = firstSeq === null ? (options.beforeSeq ?? rows.length) : firstSeq - 1
  const before = hasBefore ? rows[beforeSeq - 1] : undefined
  const provenSeq = lastSeq ?? before?.seq
  const after = hasAfter ? rows[provenSeq ?? 0] : undefined
  const proofOf = ({ seq }: Pick<Row, 'seq'>) => ({
    index: seq - 1,
    size,
    hashes: base64(inclusionPath(seq - 1, leaves)),
  })
  return {
    workspaceId,
    origin: key.name,
    vkey: key.vkey,
    firstSeq,
    lastSeq,
    checkpoint: signCheckpoint(leaves, keys),
    lastLeafProof: provenSeq === undefined ? null : proofOf({ seq: provenSeq }),
    ...(before !== undefined && { before: stubOf(before) }),
    ...(after !== undefined && { after: stubOf(after), afterLeafProof: proofOf(after) }),
  }
}
