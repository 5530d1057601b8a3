import assert from 'node:assert/strict'
import { createHmac, randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { base64, createNoteKey, inclusionPath, signCheckpoint } from '../harness/proof/naive-log.ts'
import {
  createRows,
  leavesOf,
  ledgerKey,
  lineOf,
  type Manifest,
  manifestOf,
  OTHER_WORKSPACE,
  rechainRows,
  rehashRow,
  resealRow,
  type Row,
  WORKSPACE,
} from '../harness/proof/provable-export.ts'
import { ROW_FIELDS } from '../harness/export/row-fields.ts'
import { runVerifier, temporaryFiles, type Verdict } from '../harness/proof/verifier.ts'

const VECTORS = join(import.meta.dirname, '../../../vectors/chain.json')
const write = temporaryFiles()
const rows = createRows(40)
const key = ledgerKey()
const all = fileOf(rows)
const ledger = { workspaceId: WORKSPACE, rows, key }

function fileOf(lines: readonly object[]): string {
  return lines.map(lineOf).join('')
}

function seqsOf(lines: readonly { seq: number }[]): number[] {
  return lines.map(({ seq }) => seq)
}

function runExport(file: string, manifest?: object, ...options: string[]): Verdict {
  return runVerifier([
    'export',
    write('events.jsonl', file),
    ...(manifest ? ['--manifest', write('manifest.json', manifest)] : []),
    '--vkey',
    key.vkey,
    ...options,
  ])
}

function requireTampered({ code, out, err }: Verdict, row: Row | undefined, pattern = /./): void {
  assert.equal(code, 1, out + err)
  assert.match(out, /^TAMPERED: .+\.\n$/)
  if (row) assert(out.includes(`${row.id} (seq ${row.seq}`), out)
  assert.match(out, pattern)
}

test('accepts the chains of the test vectors, and finds each tampered row', () => {
  const vectors = JSON.parse(readFileSync(VECTORS, 'utf8'))
  for (const { title, events } of vectors.chains) {
    const lines: Row[] = events.map(({ event }: { event: Row }) => event)
    const { code, out } = runExport(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    assert.equal(code, 0, `${title}: ${out}`)
    assert.equal(/events? with erased parts/.test(out), title === 'after erasures')
  }
  // A single row of a file has no event before it that it could contradict.
  const aboutContent = vectors.tampered.filter(
    ({ title }: { title: string }) => !/a gap|the event before|does not ascend/.test(title),
  )
  assert.equal(aboutContent.length, 9)
  for (const { title, event } of aboutContent) {
    assert.equal(runExport(`${JSON.stringify(event)}\n`).code, 1, title)
  }
})

test('verifies an export without its manifest, and says what that does not prove', () => {
  const { code, out } = runExport(all)
  assert.equal(code, 0, out)
  assert.match(out, /The content of each of the 40 rows matches/)
  assert.match(out, /Seq 1 to 40 follow each other without a gap/)
  assert.match(out, /Not proven:\n.*That these events are in the signed ledger/)
  const part = runExport(fileOf(rows.filter(({ seq }) => seq > 3 && seq % 2 === 0)))
  assert.equal(part.code, 0)
  assert.match(part.out, /Not proven:\n.*18 gaps of seq, the first between seq 4 and seq 6/)
})

test('cannot judge an export without rows, because nothing shows that no event matches', () => {
  for (const evidence of ['NONE', 'MEMBERSHIP']) {
    const manifest = { ...manifestOf('', [{ ...ledger, seqs: [] }]), evidence }
    for (const { checkpoint, ...workspace } of manifest.workspaces) {
      for (const claim of [
        { ...workspace, checkpoint },
        { ...workspace, checkpoint: null },
      ]) {
        const { code, out, err } = runExport('', { ...manifest, workspaces: [claim] })
        assert.equal(code, 2, out)
        assert.match(err, /^CANNOT JUDGE: The export has no rows/)
      }
    }
  }
})

test('cannot judge an export without a key, and says what is consistent', () => {
  const path = write('events.jsonl', all)
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }])
  for (const more of [[], ['--manifest', write('manifest.json', manifest)]]) {
    const { code, out, err } = runVerifier(['export', path, ...more])
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, /^CANNOT JUDGE: --vkey is missing, so nothing links the file to a ledger/)
    assert.match(err, /has 40 rows of 1 workspace, and each matches its hash/)
    assert.match(err, /Consistent:\n.*each of the 40 rows.*Seq 1 to 40 follow.*Not judged:/s)
    const changed = write('changed.jsonl', all.replace('user.login', 'user.logon'))
    requireTampered(runVerifier(['export', changed, ...more]), rows[0], /does not match its hash/)
  }
})

test('accepts rows that another program formatted, unless they are ambiguous', () => {
  const spaced = rows.map((row) => `${JSON.stringify(row, null, 1).replaceAll('\n', ' ')}\n`)
  assert.equal(runExport(spaced.join('')).code, 0)
  const [first = '', ...rest] = all.split('\n')
  for (const [changed, pattern] of [
    [first.replace('{"id"', '{"action":"forged","id"'), /the field "action" appears twice/],
    [first.replace('"nested":{', '"nested":{"a":"forged",'), /the field "a" appears twice/],
    [first.replace('-0.25,', '-0.25000000000000000001,'), /can't be represented exactly/],
    [
      first.replace('{"id"', '{"note":"forged","id"'),
      /"note" is not part of the format, and no hash covers it/,
    ],
  ] as const) {
    assert.notEqual(changed, first)
    requireTampered(runExport([changed, ...rest].join('\n')), rows[0], pattern)
  }
})

test('accepts every event that Annals can write, and no text that only looks like one', () => {
  const [row] = rows
  assert(row)
  const values = [
    { '\u{1f600}': 1, '\ufb33': 2, é: '\u2028', 'é"\n': '\\u0041' },
    { '': [[], {}, [{}], [true, false, null]], ' ': 'tab\t', a: -1.5e-7, b: 1e21, c: 0 },
    { traceId: ',"traceId":null', hash: '"}', z: '\ud83d\ude00 \u007f' },
  ]
  for (const metadata of values) {
    const { code, out } = runExport(lineOf(resealRow({ ...row, metadata, action: 'é "1"' })))
    assert.equal(code, 0, out)
  }
  // The owner of the ledger can commit to any text.
  for (const text of [
    '{"a":NaN}',
    '{"a":-Infinity}',
    '{"a":undefined}',
    '{"a":01}',
    '{"a":1,}',
    '{"a":1;"b":2}',
    '{"a":"\u0001"}',
    '{"a":"\\x"}',
    '{"a":"\\u0041"}',
    '{"a":1,"a":1}',
    '{"b":1,"a":1}',
    '{"a" :1}',
    '{"a":1.0}',
    '{"a":-0}',
    '{"a":[1}',
    '{"a":1',
    '[1]',
    '"a"',
    '1',
  ]) {
    const salt = Buffer.alloc(16, 7)
    const hmac = createHmac('sha256', salt).update(`annals/v1/metadata\0${text}`).digest('hex')
    const sealed = { ...row.sealed, metadata: hmac }
    const salts = { ...row.salts, metadata: salt.toString('hex') }
    const line = lineOf(rehashRow({ ...row, metadata: { x: 1 }, sealed, salts }))
    requireTampered(runExport(line.replace('{"x":1}', text)), undefined)
  }
})

/** Changes one digit or letter, or adds a value where there is none. */
function editText(text: string): string {
  const places = [...text.matchAll(/[0-9a-z]/g)].map(({ index }) => index)
  const at = places[randomInt(places.length)] ?? 0
  return `${text.slice(0, at)}${text[at] === '1' ? '2' : '1'}${text.slice(at + 1)}`
}

function editField(row: Row, field: (typeof ROW_FIELDS)[number]): object {
  const value = row[field]
  if (value === null) return { ...row, [field]: field === 'traceId' ? 'ab' : { id: 'added' } }
  if (typeof value === 'string') return { ...row, [field]: editText(value) }
  if (typeof value === 'number') return { ...row, [field]: value + 100 }
  return { ...row, [field]: JSON.parse(`{"x":${JSON.stringify(value)}}`) }
}

test('finds and names each edited field of each row', () => {
  for (let round = 0; round < rounds(2, 20); round += 1) {
    for (const field of ROW_FIELDS) {
      const index = randomInt(rows.length)
      const row = rows[index] ?? assert.fail()
      const edited = editField(row, field)
      const file = fileOf(rows.with(index, { ...row, ...edited }))
      const { code, out } = runExport(file)
      assert.equal(code, 1, `${field} of seq ${row.seq}: ${out}`)
      const names = field === 'id' || field === 'seq' ? `line ${row.seq}` : row.id
      assert(out.includes(names), `${field}: ${out}`)
    }
  }
})

test('finds every changed byte', () => {
  const bytes = Buffer.from(all)
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }])
  for (let round = 0; round < rounds(60, 2_000); round += 1) {
    const changed = Buffer.from(bytes)
    const at = randomInt(changed.length)
    changed[at] = (changed[at] ?? 0) ^ (1 + randomInt(255))
    const path = write('changed.jsonl', changed)
    const files = [path, '--manifest', write('manifest.json', manifest), '--vkey', key.vkey]
    const { code, out, err } = runVerifier(['export', ...files])
    assert.equal(code, 1, `byte ${at}: ${out}${err}`)
  }
})

test('finds swapped salts, parts and commitments', () => {
  const index = 3
  const row = rows[index] ?? assert.fail()
  const other = rows[1] ?? assert.fail()
  const { actor, resource } = row.salts
  for (const changed of [
    { ...row, salts: { ...row.salts, actor: resource ?? '', resource: actor ?? '' } },
    { ...row, salts: other.salts },
    { ...row, sealed: other.sealed },
    { ...row, actor: row.resource, resource: row.actor },
    { ...row, metadata: null },
    { ...row, salts: {} },
    { ...row, actor: null, salts: { ...row.salts, actor: '' } },
  ]) {
    requireTampered(runExport(fileOf(rows.with(index, changed))), row)
  }
})

test('finds salts whose digits are not hex, even if they would decode to the same bytes', () => {
  const row = rows.find(({ salts }) => salts.actor?.includes('0'))
  assert(row?.salts.actor)
  for (const digit of ['g', 'O', 'A', ' ', '\u00e0']) {
    const actor = row.salts.actor.replace('0', digit)
    const changed = { ...row, salts: { ...row.salts, actor } }
    requireTampered(runExport(fileOf(rows.with(row.seq - 1, changed))), row)
  }
})

test('finds deleted, inserted, duplicated and swapped rows of an export without filters', () => {
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }])
  const row = rows[20] ?? assert.fail()
  const next = rows[21] ?? assert.fail()
  const inserted = rehashRow({ ...row, id: next.id, prevHash: row.hash })
  for (const [lines, culprit] of [
    [rows.toSpliced(20, 1), next],
    [rows.toSpliced(20, 1, next, row), next],
    [rows.toSpliced(21, 0, row), row],
    [rows.toSpliced(21, 0, inserted), inserted],
    [rows.toSpliced(21, 0, resealRow({ ...inserted, seq: 22 })), next],
    [rows.slice(0, -1), rows[38]],
    [rows.slice(1), next && rows[1]],
    [[], undefined],
  ] as const) {
    const file = fileOf(lines)
    // The attacker also adapts what the manifest says about the file.
    const { rows: count, sha256 } = manifestOf(file, [])
    requireTampered(runExport(file, { ...manifest, rows: count, sha256 }), culprit)
  }
  requireTampered(runExport(fileOf(rows.toSpliced(20, 1)), undefined, '--no-gaps'), next)
})

test('finds chains that only their owner could have built', () => {
  const [first, , third] = rows
  const sixth = rows[5]
  assert(first && third && sixth)
  for (const [lines, pattern] of [
    [rechainRows(rows.with(5, { ...sixth, id: third.id })), /its id is not greater/],
    [rechainRows(rows.with(5, { ...sixth, companyId: WORKSPACE })), /another companyId/],
    [[rehashRow({ ...first, prevHash: 'a'.repeat(64) })], /prevHash is not 64 zeros/],
    [[sixth, resealRow({ ...(rows[6] ?? sixth), seq: 4 })], /it follows seq 6/],
    [[{ ...first, salts: { ...first.salts, other: '00'.repeat(16) } }], /salts has a field/],
  ] as const) {
    requireTampered(runExport(fileOf(lines)), undefined, pattern)
  }
})

test('finds bytes that are not UTF-8, even if a decoder would repair them', () => {
  const [first] = rows
  assert(first)
  const file = Buffer.from(lineOf(resealRow({ ...first, action: '\ufffd' })))
  const at = file.indexOf('\ufffd')
  const path = write(
    'broken.jsonl',
    Buffer.concat([file.subarray(0, at), Buffer.from([0xff]), file.subarray(at + 3)]),
  )
  assert.equal(runExport(file.toString()).code, 0)
  requireTampered(runVerifier(['export', path]), undefined, /Line 1 is not UTF-8/)
})

test('finds a file that was cut in the middle of a line or at its end', () => {
  requireTampered(runExport(all.slice(0, -1)), undefined, /Line 40 has no line break/)
  requireTampered(runExport(all.slice(0, -300)), undefined, /Line 40 has no line break/)
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }])
  requireTampered(runExport(fileOf(rows.slice(0, 30)), manifest), rows[29], /ends at seq 40/)
})

test('finds a history that its owner rewrote, from any event on', () => {
  for (const from of [0, 7, 39]) {
    const row = rows[from] ?? assert.fail()
    const rewritten = rechainRows(rows.with(from, { ...row, action: 'rewritten' }), from)
    const file = fileOf(rewritten)
    assert.equal(runExport(file).code, 0)
    const manifest = manifestOf(file, [{ ...ledger, rows: rewritten, seqs: seqsOf(rows) }])
    const checkpoint = signCheckpoint(leavesOf(rows), [key])
    const kept = manifest.workspaces.map((workspace) => ({ ...workspace, checkpoint }))
    const verdict = runExport(file, { ...manifest, workspaces: kept })
    requireTampered(verdict, rewritten[39], /does not lead to the signed root/)
  }
})

function changeWorkspace(manifest: Manifest, change: object): object {
  return { ...manifest, workspaces: manifest.workspaces.map((one) => ({ ...one, ...change })) }
}

test('finds forged and replayed checkpoints, wrong origins and changed proofs', () => {
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }])
  const proof = { index: 39, size: 40, hashes: base64(inclusionPath(39, leavesOf(rows))) }
  assert.deepEqual(manifest.workspaces[0]?.lastLeafProof, proof)
  const checkpoint = manifest.workspaces[0]?.checkpoint ?? ''
  const { hashes } = proof
  for (const change of [
    { checkpoint: checkpoint.replace('\n40\n', '\n41\n') },
    { checkpoint: signCheckpoint(leavesOf(rows).slice(0, 30), [key]) },
    { origin: `annals.example/${OTHER_WORKSPACE}` },
    { lastLeafProof: { ...proof, index: 38 } },
    { lastLeafProof: { ...proof, size: 41 } },
    { lastLeafProof: { ...proof, hashes: hashes.slice(1) } },
    { lastLeafProof: { ...proof, hashes: [...hashes, hashes[0]] } },
    { lastLeafProof: { ...proof, hashes: hashes.toReversed() } },
    { firstSeq: 2 },
    { lastSeq: 41 },
    { firstSeq: null, lastSeq: null },
  ]) {
    requireTampered(runExport(all, changeWorkspace(manifest, change)), undefined)
  }
  requireTampered(runExport(all, { ...manifest, rows: 41 }), undefined, /41 rows/)
  requireTampered(runExport(all, { ...manifest, sha256: '00' }), undefined, /SHA-256/)
  requireTampered(runExport(all, { ...manifest, workspaces: [] }), rows[0], /no workspace/)
  const foreign = signCheckpoint(leavesOf(rows), [createNoteKey(key.name)])
  for (const [changed, ...options] of [
    [changeWorkspace(manifest, { checkpoint: foreign })],
    [changeWorkspace(manifest, { lastLeafProof: null })],
    [changeWorkspace(manifest, { checkpoint: null })],
    [{ ...manifest, version: 2 }],
    [{ ...manifest, evidence: 'ALL' }],
    [{ ...manifest, rows: null }],
    [manifest, '--frobnicate'],
  ] as const) {
    assert.equal(runExport(all, changed, ...options).code, 2)
  }
  const unsigned = runVerifier([
    'export',
    write('events.jsonl', all),
    '--manifest',
    write('manifest.json', manifest),
  ])
  assert.equal(unsigned.code, 2)
  assert.match(unsigned.err, /--vkey is missing/)
})

test('verifies a filtered export, and says which rows only their hashes cover', () => {
  const billing = rows.filter(({ category }) => category === 'billing')
  const file = fileOf(billing)
  const filters = { category: 'billing', actorId: 'u1' }
  const manifest = manifestOf(file, [{ ...ledger, seqs: seqsOf(billing) }], { filters })
  const { code, out } = runExport(file, manifest)
  assert.equal(code, 0, out)
  assert.match(out, /The last 1 row is in the signed ledger/)
  assert.match(out, /Not proven:.*that the 12 rows before the last gap are in the signed ledger/s)
  assert.match(out, /Compare them with those you expect: \{"category":"billing","actorId":"u1"\}/)
  const added = fileOf(rows.filter(({ seq }) => seq === 2 || seq % 3 === 0))
  const extended = manifestOf(added, [{ ...ledger, seqs: [2, 39] }], { filters })
  requireTampered(runExport(added, extended), rows[1], /does not match the filters/)
})

test('says how many events come before the first row, even if filters may have skipped them', () => {
  for (const filters of [{}, { category: 'billing' }]) {
    for (const evidence of ['NONE', 'MEMBERSHIP']) {
      const matching = rows.filter(({ category }) => category === (filters.category ?? category))
      const kept = matching.slice(3)
      const seqs = seqsOf(kept)
      const file = fileOf(kept)
      const manifest = { ...manifestOf(file, [{ ...ledger, seqs }], { filters }), evidence }
      const { code, out, err } = runExport(file, manifest)
      assert.equal(code, 0, out + err)
      const skipped = `the ${Number(seqs[0]) - 1} events before seq ${seqs[0]}.`
      assert(out.slice(out.indexOf('Not proven:')).includes(skipped), out)
    }
  }
})

test('verifies several workspaces in one file', () => {
  const others = createRows(9, OTHER_WORKSPACE)
  const otherKey = ledgerKey(OTHER_WORKSPACE)
  const file = all + fileOf(others)
  const other = { workspaceId: OTHER_WORKSPACE, rows: others, key: otherKey }
  const both = [
    { ...ledger, seqs: seqsOf(rows) },
    { ...other, seqs: seqsOf(others) },
  ]
  const manifest = manifestOf(file, both)
  const { code, out, err } = runExport(file, manifest, '--vkey', otherKey.vkey)
  assert.equal(code, 0, out + err)
  assert.equal(runExport(file, manifest).code, 2)
  const mixed = fileOf([...rows.slice(0, 20), ...others, ...rows.slice(20)])
  requireTampered(runExport(mixed), rows[20], /rows of another workspace precede it/)
  // One workspace's checkpoint is no evidence for another.
  const [first, second] = manifest.workspaces
  assert(first && second)
  const swapped = [{ ...first, checkpoint: second.checkpoint, origin: second.origin }, second]
  const verdict = runExport(file, { ...manifest, workspaces: swapped }, '--vkey', otherKey.vkey)
  requireTampered(verdict, undefined, /which is not the ledger of workspace/)
})

test('cannot judge with a key if the manifest has nothing that is signed', () => {
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }], { evidence: 'NONE' })
  const unsigned = manifest.workspaces.map(({ workspaceId, firstSeq, lastSeq }) => ({
    workspaceId,
    firstSeq,
    lastSeq,
  }))
  const { code, err } = runExport(all, { ...manifest, workspaces: unsigned })
  assert.equal(code, 2)
  assert.match(err, /the manifest has no checkpoint/)
})

test('shows all filters, so that the auditor can compare them', () => {
  const actorId = Array.from({ length: 200 }, (_, nth) => `person ${nth}`)
  const filters = { anyOf: { actorId } }
  const manifest = manifestOf(all, [{ ...ledger, seqs: seqsOf(rows) }], { filters })
  const { out } = runExport(all, manifest)
  assert(out.includes(JSON.stringify(filters)), out)
})

test('counts erased parts', () => {
  const erased = { ...(rows[0] ?? assert.fail()), metadata: null }
  const { metadata: _salt, ...salts } = erased.salts
  const { code, out } = runExport(fileOf(rows.with(0, { ...erased, salts })))
  assert.equal(code, 0, out)
  assert.match(out, /1 event with erased parts/)
})

test('cannot judge a CSV file, even if it matches its manifest', () => {
  const file = 'id,seq,metadata\r\na,1,"{\n""x"":1}"\r\nb,2,\r\n'
  const manifest = { ...manifestOf(file, [], { format: 'CSV', evidence: 'NONE' }), rows: '2' }
  const { code, err } = runExport(file, manifest)
  assert.equal(code, 2)
  assert.match(err, /a CSV file has no salts or commitments/)
  requireTampered(runExport(file.replace('b,2', 'b,3'), manifest), undefined, /SHA-256/)
})

test('shows progress on a terminal only', () => {
  const [line = ''] = all.split('\n')
  const path = write('large.jsonl', `${line}\n`.repeat(10_000))
  const { err } = runVerifier(['export', path], true)
  assert.match(err, /^\r\[[#.]{40}\] +\d+%/)
  assert.equal(runExport(fileOf(rows)).err, '')
})

test('reads lines of any length up to 16 MiB', () => {
  const [first = rows[0], ...rest] = rows
  assert(first)
  const long = resealRow({ ...first, metadata: { blob: 'é'.repeat(2_000_000) } })
  const file = fileOf(rechainRows([long, ...rest]))
  assert.equal(runExport(file).code, 0)
  const escaped = resealRow({ ...first, metadata: { blob: '\n"\\'.repeat(1_000_000) } })
  const spaced = `${JSON.stringify(escaped).replace('{', '{ ')}\n`
  assert.equal(runExport(spaced).code, 0)
  requireTampered(runExport(spaced.replace('{ ', '{ "seq":1,')), first, /"seq" appears twice/)
  const endless = runExport('x'.repeat(18 << 20))
  assert.equal(endless.code, 2)
  assert.match(endless.err, /longer than/)
})

test('keeps control characters of a file out of the terminal', () => {
  const row = rows[0] ?? assert.fail()
  const { out } = runExport(lineOf({ ...row, '\u001b[31m\u009b\u202e': 1 }))
  // oxlint-disable-next-line no-control-regex
  assert.doesNotMatch(out, /[\u001b\u009b\u202e]/)
})
