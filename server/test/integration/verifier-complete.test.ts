import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { createWitnessKey } from '../harness/proof/naive-log.ts'
import {
  createRows,
  ledgerKey,
  lineOf,
  type Manifest,
  manifestOf,
  rechainRows,
  resealRow,
  type Row,
  stubOf,
  timeOf,
  WORKSPACE,
} from '../harness/proof/provable-export.ts'
import { runVerifier, temporaryFiles, type Verdict } from '../harness/proof/verifier.ts'

const write = temporaryFiles()
const rows = createRows(60)
const key = ledgerKey()

type Export = { file: string; manifest: Manifest }

/** A COMPLETE export of the events from a sequence number on. */
function complete(
  filters: object,
  matches: (row: Row) => boolean,
  { first = 1, last = rows.length, ledger = rows, hasBefore = false } = {},
): Export {
  const range = ledger.slice(first - 1, last)
  const file = fileOf(range, matches)
  const seqs = range.map(({ seq }) => seq)
  const evidence = 'COMPLETE'
  const ledgers = [{ workspaceId: WORKSPACE, rows: ledger, key, seqs }]
  return { file, manifest: manifestOf(file, ledgers, { evidence, filters, hasBefore }) }
}

function fileOf(range: readonly Row[], matches: (row: Row) => boolean): string {
  return range.map((row) => lineOf(matches(row) ? row : stubOf(row))).join('')
}

function runExport({ file, manifest }: { file: string; manifest: object }, ...options: string[]) {
  const files = [write('events.jsonl', file), '--manifest', write('manifest.json', manifest)]
  return runVerifier(['export', ...files, '--vkey', key.vkey, ...options])
}

/** Adapts the manifest to a changed file, as an attacker would who can't sign. */
function adapted({ manifest }: Export, file: string): Export {
  const { rows: count, sha256 } = manifestOf(file, [])
  return { file, manifest: { ...manifest, rows: count, sha256 } }
}

function requireTampered({ code, out, err }: Verdict, row: Row | undefined, pattern = /./): void {
  assert.equal(code, 1, out + err)
  if (row) assert(out.includes(`${row.id} (seq ${row.seq}`), out)
  assert.match(out, pattern)
}

const isBilling = ({ category }: Row) => category === 'billing'

test('proves that no matching row of a COMPLETE export is missing', () => {
  const time = timeOf(30)
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  for (const [filters, matches] of [
    [{}, () => true],
    [{ category: 'billing' }, isBilling],
    [{ action: 'user.login', category: 'auth' }, (row) => !isBilling(row) && row.seq % 5 !== 0],
    [{ projectId: '018f0000-0000-7000-8000-00000000b001' }, ({ seq }) => seq % 4 === 0],
    [{ traceId }, (row) => row.traceId !== null],
    [{ to: time }, (row) => row.timestamp < time],
    [{ from: time, to: timeOf(40), workspaceId: WORKSPACE }, ({ seq }) => seq >= 30 && seq < 40],
    [{ anyOf: ['category:billing', 'category:other'] }, isBilling],
    [{ not: ['category:billing'] }, (row) => !isBilling(row)],
    [{ category: 'nothing' }, () => false],
  ] satisfies [object, (row: Row) => boolean][]) {
    const { code, out, err } = runExport(complete(filters, matches))
    assert.equal(code, 0, JSON.stringify(filters) + out + err)
    assert.match(out, /no event from seq 1 to 60 that matches the filters is missing/)
  }
})

test('says how many stubs there are, and that the filters are unknown without the manifest', () => {
  const { file } = complete({ category: 'billing' }, isBilling)
  const { code, out } = runVerifier(['export', write('events.jsonl', file), '--vkey', key.vkey])
  assert.equal(code, 0, out)
  assert.match(out, /has 20 rows and 40 stubs of 1 workspace, and each matches its hash/)
  assert.match(out, /Not proven:[^]*that the filters skipped the 40 stubs/)
})

test('finds each row that was left out, even if its stub replaces it', () => {
  const good = complete({ category: 'billing' }, isBilling)
  for (let round = 0; round < rounds(8, 100); round += 1) {
    const row = rows[3 * randomInt(20) + 2] ?? assert.fail()
    const stubbed = fileOf(rows, (one) => isBilling(one) && one !== row)
    requireTampered(runExport(adapted(good, stubbed)), row, /The row was left out/)
    const without = rows.filter((one) => one !== row)
    const next = rows[row.seq]
    const verdict = runExport(adapted(good, fileOf(without, isBilling)))
    requireTampered(verdict, next, next ? /1 event in between is missing/ : /Rows at the end/)
  }
})

test('finds edited, added, moved and deleted stubs', () => {
  const good = complete({ category: 'billing' }, isBilling)
  const lines = good.file.split('\n').slice(0, -1)
  const index = 30
  const row = rows[index] ?? assert.fail()
  const line = lines[index] ?? ''
  assert(line.startsWith('{"stub":true'))
  for (const changed of [
    line.replace('"category":"auth"', '"category":"other"'),
    line.replace(/"timestamp":"2026/, '"timestamp":"2025'),
    line.replace(/"projectId":null/, '"projectId":"018f0000-0000-7000-8000-00000000b001"'),
    line.replace('"stub":true', '"stub":false'),
    line.replace('"stub":true', '"stub":true,"stub":true'),
    line.replace('{"stub":true', '{"stub":true,"actor":null'),
    line.replace('{"stub":true,', '{'),
    JSON.stringify(stubOf(resealRow({ ...row, category: 'other' }))),
    lines[index - 1] ?? '',
    lines[index + 3] ?? '',
  ]) {
    assert.notEqual(changed, line)
    const file = `${lines.with(index, changed).join('\n')}\n`
    const { code, out, err } = runExport(adapted(good, file))
    assert.equal(code, 1, changed + out + err)
    assert.match(out, /^TAMPERED: Event .+ \(seq \d+, line \d+\): .+\.\n$/)
  }
  const missing = `${lines.toSpliced(index, 1).join('\n')}\n`
  requireTampered(runExport(adapted(good, missing)), rows[index + 1], /in between is missing/)
  const { manifest } = good
  const weaker = runExport({ file: good.file, manifest: { ...manifest, evidence: 'MEMBERSHIP' } })
  requireTampered(weaker, rows[0], /it is a stub, but the manifest is not COMPLETE/)
})

test('a filter with a time outside the years 0000 to 9999 hides no row', () => {
  for (const to of ['9999-12-31T23:59:59-12:00', '+010000-01-01T00:00:00Z', 'Fri Dec 31 9999']) {
    const hidden = complete({ to }, () => false)
    const { code, err } = runExport(hidden)
    assert.equal(code, 2, to)
    assert.match(err, /The manifest has no valid time/)
  }
})

test('finds a stub whose hidden row was rewritten with the rest of the chain', () => {
  const hidden = rows[2] ?? assert.fail()
  const rewritten = rechainRows(rows.with(2, { ...hidden, category: 'auth' }), 2)
  const good = complete({ category: 'billing' }, isBilling)
  const file = fileOf(rewritten, isBilling)
  requireTampered(runExport(adapted(good, file)), rewritten[59], /does not lead to the signed root/)
})

test('proves the start of a period by the event before it', () => {
  // Two events per day, so the range can start 24 hours before the period.
  const sparse = rechainRows(
    rows.map((row) => ({ ...row, timestamp: daily(row), receivedAt: daily(row) })),
  )
  const from = daily({ seq: 40 })
  const matches = ({ timestamp }: Row) => timestamp >= from
  const options = { ledger: sparse, first: 38 }
  const good = complete({ from }, matches, { ...options, hasBefore: true })
  const { code, out } = runExport(good)
  assert.equal(code, 0, out)
  assert.match(out, /seq 37, the last event before the export, was received more than 24 hours/)
  assert.doesNotMatch(out, /that none of the 37 events/)

  const plain = runExport(complete({ from }, matches, options))
  assert.equal(plain.code, 0)
  assert.match(
    plain.out,
    /Not proven:.*that none of the 37 events before seq 38 match the filters/s,
  )

  // Rows at the start are missing, and the manifest hides that.
  const late = complete({ from }, matches, { ...options, first: 43 })
  assert.equal(runExport(late).code, 2)
  assert.equal(
    runExport(complete({ from }, matches, { ...options, first: 43, hasBefore: true })).code,
    2,
  )
  const [workspace] = good.manifest.workspaces
  const [lateWorkspace] = late.manifest.workspaces
  const stolen = [{ ...lateWorkspace, before: workspace?.before }]
  const verdict = runExport({ ...late, manifest: { ...late.manifest, workspaces: stolen } })
  requireTampered(verdict, sparse[36], /it is not the event before the first one/)
  const forged = [{ ...workspace, before: { ...workspace?.before, receivedAt: daily({ seq: 1 }) } }]
  const verdictOfForged = runExport({ ...good, manifest: { ...good.manifest, workspaces: forged } })
  requireTampered(verdictOfForged, sparse[36], /does not match its hash/)
})

function daily({ seq }: { seq: number }): string {
  return timeOf(seq * 12 * 60)
}

test('asks before it accepts a COMPLETE export that starts late', () => {
  const late = complete({}, () => true, { first: 5 })
  const { code, err } = runExport(late)
  assert.equal(code, 2)
  assert.match(err, /The export starts at seq 5, and nothing shows .* use --allow-late-start/)
  const accepted = runExport(late, '--allow-late-start')
  assert.equal(accepted.code, 0)
  assert.match(accepted.out, /Not proven:.*that none of the 4 events before seq 5 match/s)
})

test('accepts a range without events if the manifest shows that none match', () => {
  const options = { evidence: 'COMPLETE', filters: { from: timeOf(60 + 25 * 60) } }
  const empty = { workspaceId: WORKSPACE, rows: [], key, seqs: [] }
  assert.equal(runExport({ file: '', manifest: manifestOf('', [empty], options) }).code, 0)
  const idle = { ...empty, rows }
  assert.equal(runExport({ file: '', manifest: manifestOf('', [idle], options) }).code, 2)
  const shown = manifestOf('', [idle], { ...options, hasBefore: true })
  const { code, out, err } = runExport({ file: '', manifest: shown })
  assert.equal(code, 0, out + err)
  assert.match(
    out,
    /Proven:[^]*no event matches the filters: seq 60, the last event before the export, was received more than 24 hours before .* The signed ledger ends there\./,
  )
  assert.doesNotMatch(out, /after its start/)
})

test('finds an export that claims to have no events although the ledger had some', () => {
  // One event per minute up to seq 40. The others came two days later, and were then left out.
  const late = rechainRows(
    rows.map((row) =>
      row.seq <= 40 ? row : { ...row, ...bothTimes(timeOf(row.seq + 2 * 1_440)) },
    ),
  )
  const filters = { from: timeOf(2 * 1_440) }
  const snapshotAt = timeOf(3 * 1_440)
  const ledgers = [{ workspaceId: WORKSPACE, rows: late, key, seqs: [] }]
  const options = { evidence: 'COMPLETE', filters, hasBefore: true, beforeSeq: 40, snapshotAt }
  const claim = (changed: object) => ({
    file: '',
    manifest: manifestOf('', ledgers, { ...options, ...changed }),
  })
  requireTampered(
    runExport(claim({ hasAfter: true })),
    late[40],
    /received at .*, before the export at .*, but the export ends with seq 40\. 20 events/,
  )
  const all = claim({ hasAfter: true, hasBefore: false, beforeSeq: 0 })
  requireTampered(runExport(all), late[0], /but the export has no events of its workspace/)
  for (const hidden of [claim({}), claim({ snapshotAt: undefined, hasAfter: true })]) {
    const { code, err } = runExport(hidden)
    assert.equal(code, 2)
    assert.match(err, /seq 41/)
  }
  // Created before those events were received, the same export is right.
  const early = runExport(claim({ hasAfter: true, snapshotAt: timeOf(1_500) }))
  assert.equal(early.code, 0, early.out + early.err)
  assert.match(early.out, /Seq 41, the next event of the ledger, was received at/)
  assert.match(early.out, /Not proven:.*anything about the 20 events .* after seq 40/s)
  const archived = runExport(claim({ snapshotAt: null }))
  assert.equal(archived.code, 0, archived.out + archived.err)
  assert.match(archived.out, /Only as good as the manifest[^]*archived events only/)
})

test('says that a COMPLETE export has no time if the manifest lacks it', () => {
  const undated = /is not older than you expect/
  const { file, manifest } = complete({}, () => true)
  assert.match(runExport({ file, manifest }).out, undated)
  const dated = { ...manifest, snapshotAt: timeOf(5_000) }
  assert.doesNotMatch(runExport({ file, manifest: dated }).out, undated)
})

test('finds a COMPLETE export whose end was cut off', () => {
  const cut = (snapshotAt: string) => {
    const { file } = complete({}, () => true, { last: 50 })
    const seqs = rows.slice(0, 50).map(({ seq }) => seq)
    const ledgers = [{ workspaceId: WORKSPACE, rows, key, seqs }]
    const options = { evidence: 'COMPLETE', hasAfter: true, snapshotAt }
    return { file, manifest: manifestOf(file, ledgers, options) }
  }
  requireTampered(runExport(cut(timeOf(60))), rows[50], /the export ends with seq 50/)
  const { code, out } = runExport(cut(timeOf(51)))
  assert.equal(code, 0, out)
  assert.match(
    out,
    /Seq 51, the next event of the ledger, was received at .* not before the export/,
  )
  const { file, manifest } = cut(timeOf(51))
  const [workspace] = manifest.workspaces
  for (const [change, pattern] of [
    [{ after: stubOf(rows[51] ?? assert.fail()) }, /it is not the event after the last one/],
    [{ after: { ...workspace?.after, receivedAt: timeOf(60) } }, /does not match its hash/],
    [{ after: stubOf(resealRow({ ...(rows[50] ?? assert.fail()), action: 'x' })) }, /signed root/],
    [{ afterLeafProof: workspace?.lastLeafProof }, /the afterLeafProof of the manifest is for/],
  ] satisfies [object, RegExp][]) {
    const forged = { ...manifest, workspaces: [{ ...workspace, ...change }] }
    const verdict = runExport({ file, manifest: forged })
    assert.equal(verdict.code, 1, verdict.out + verdict.err)
    assert.match(verdict.out, pattern)
  }
  const unproven = { ...manifest, workspaces: [{ ...workspace, afterLeafProof: null }] }
  assert.equal(runExport({ file, manifest: unproven }).code, 2)
})

const bothTimes = (time: string) => ({ timestamp: time, receivedAt: time })

test('cannot judge an export whose end may be missing', () => {
  const { file, manifest } = complete({ category: 'billing' }, isBilling, { last: 50 })
  const { code, err } = runExport({ file, manifest })
  assert.equal(code, 2)
  assert.match(err, /ends with seq 50, but its signed ledger has seq 51 to 60/)
  const archived = runExport({ file, manifest: { ...manifest, snapshotAt: null } })
  assert.equal(archived.code, 0)
  assert.match(archived.out, /That the export was requested for archived events only/)
  assert.match(archived.out, /anything about the 10 events of the signed ledger after seq 50/)
})

test('cannot judge completeness for filters on parts of an event', () => {
  for (const filters of [{ actorId: 'u1' }, { not: ['actorId:u1'] }, { text: 'ada' }]) {
    const { code, err } = runExport(complete(filters, () => true))
    assert.equal(code, 2)
    assert.match(err, /nothing can prove that for the filter/)
  }
})

test('reports the witnesses of a checkpoint', () => {
  const witness = createWitnessKey('witness.example/w', 1_800_000_000)
  const file = fileOf(rows, () => true)
  const ledgers = [{ workspaceId: WORKSPACE, rows, key, seqs: rows.map(({ seq }) => seq) }]
  const manifest = manifestOf(file, ledgers, { keys: [key, witness] })
  const { code, out } = runExport({ file, manifest }, '--vkey', witness.vkey)
  assert.equal(code, 0)
  assert.match(out, /The witness witness.example\/w saw this ledger at 2027-01-15T08:00:00.000Z/)
})
