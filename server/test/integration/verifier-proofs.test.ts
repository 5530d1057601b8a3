import assert from 'node:assert/strict'
import { createHash, randomInt } from 'node:crypto'
import { test } from 'node:test'
import {
  base64,
  consistencyPath,
  createNoteKey,
  createWitnessKey,
  inclusionPath,
  type NoteKey,
  signCheckpoint,
  signNote,
  treeRoot,
} from '../harness/proof/naive-log.ts'
import {
  coreTextOf,
  createRows,
  leavesOf,
  ledgerKey,
  OTHER_WORKSPACE,
  rechainRows,
  rehashRow,
  type Row,
  WORKSPACE,
} from '../harness/proof/provable-export.ts'
import {
  runVerifier,
  temporaryFiles,
  type Verdict,
  verifierModule,
} from '../harness/proof/verifier.ts'

const { isIncluded, consistencyProblem } = verifierModule
const write = temporaryFiles()
const SIZE_MAX = 1_100
const leaves = Array.from({ length: SIZE_MAX }, (_, index) =>
  createHash('sha256').update(`\0leaf ${index}`).digest(),
)

test('accepts the proofs of a naive tree of every size from 1 to 1,100, and no others', () => {
  for (let size = 1; size <= SIZE_MAX; size += 1) {
    const root = treeRoot(leaves, 0, size)
    for (const index of new Set([0, size - 1, size >> 1, randomInt(size), randomInt(size)])) {
      const path = inclusionPath(index, leaves, 0, size)
      const leaf = leaves.slice(index)[0] ?? root
      const place = `index ${index}, size ${size}`
      assert(isIncluded(leaf, index, size, path, root), place)
      for (const wrong of wrongPaths(path)) {
        assert(!isIncluded(leaf, index, size, wrong, root), place)
      }
      assert(!isIncluded(leaf, size, size, path, root), place)
      if (size > 1) assert(!isIncluded(leaf, (index + 1) % size, size, path, root), place)
      assert(!isIncluded(flipped(leaf), index, size, path, root), place)
    }
  }
})

test('accepts the consistency proofs of a naive tree up to 1,100 events, and no others', () => {
  for (let size = 1; size <= SIZE_MAX; size += 1) {
    const newer = { size, root: treeRoot(leaves, 0, size) }
    for (const from of new Set([1, size, size >> 1 || 1, randomInt(size) + 1])) {
      const older = { size: from, root: treeRoot(leaves, 0, from) }
      const path = consistencyPath(from, leaves, size)
      const place = `from ${from} to ${size}`
      assert.equal(consistencyProblem(older, newer, path), null, place)
      for (const wrong of wrongPaths(path)) {
        assert.notEqual(consistencyProblem(older, newer, wrong), null, place)
      }
      const rewritten = { size: from, root: flipped(older.root) }
      assert.notEqual(consistencyProblem(rewritten, newer, path), null, place)
      const forked = { size, root: flipped(newer.root) }
      assert.notEqual(consistencyProblem(older, forked, path), null, place)
    }
  }
})

test('rejects proofs that lead to the right hash of a tree of another size', () => {
  const [leaf = Buffer.alloc(0)] = leaves
  const root = (size: number) => treeRoot(leaves, 0, size)
  const [sibling = leaf] = inclusionPath(0, leaves, 0, 4)
  assert(isIncluded(leaf, 0, 2, [sibling], root(2)))
  assert(!isIncluded(leaf, 0, 4, [sibling], root(2)))
  const older = { size: 2, root: root(2) }
  const path = consistencyPath(2, leaves, 4)
  assert.equal(consistencyProblem(older, { size: 4, root: root(4) }, path), null)
  assert.notEqual(consistencyProblem(older, { size: 8, root: root(4) }, path), null)
  const above = (hash: Buffer) =>
    createHash('sha256')
      .update(Buffer.from([1]))
      .update(leaf)
      .update(hash)
      .digest()
  const longer = [...consistencyPath(3, leaves, 4), leaf]
  const third = { size: 3, root: above(root(3)) }
  assert.notEqual(consistencyProblem(third, { size: 4, root: above(root(4)) }, longer), null)
})

function flipped(hash: Buffer): Buffer {
  const copy = Buffer.from(hash)
  copy[0] = (copy[0] ?? 0) ^ 1
  return copy
}

/** Truncated, padded, and with one hash changed. */
function wrongPaths(path: readonly Buffer[]): Buffer[][] {
  const at = randomInt(path.length + 1) % Math.max(1, path.length)
  return [
    ...(path.length > 0 ? [path.slice(1), path.slice(0, -1)] : []),
    [...path, Buffer.alloc(32)],
    [Buffer.alloc(32), ...path],
    ...(path.length > 0 ? [path.with(at, flipped(path[at] ?? Buffer.alloc(32)))] : []),
  ]
}

test('verifies the example of the signed-note specification', () => {
  const vkey = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k'
  const note = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`
  const good = runVerifier(['checkpoint', write('example.txt', note), '--vkey', vkey])
  assert.equal(good.code, 2)
  assert.match(good.err, /is a signed note, but not a checkpoint/)
  const changed = note.replace('example message', 'Example message')
  const bad = runVerifier(['checkpoint', write('changed.txt', changed), '--vkey', vkey])
  assert.equal(bad.code, 1)
  assert.match(bad.out, /TAMPERED: .*the signature of example.com\/foo is wrong/)
})

test('reads the checkpoint of the tlog-cosignature specification up to its missing key', () => {
  const note = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
`
  const { vkey } = createNoteKey('example.com/behind-the-sofa')
  const { code, err } = runVerifier(['checkpoint', write('sofa.txt', note), '--vkey', vkey])
  assert.equal(code, 2)
  assert.match(
    err,
    /behind-the-sofa \(key ID 033de0ae\), witness.example.com\/w1 \(key ID 8d66cf3f\)/,
  )
})

const rows = createRows(20)
const key = ledgerKey()
const checkpoint = signCheckpoint(leavesOf(rows), [key])

function runCheckpoint(note: string, ...vkeys: string[]): Verdict {
  return runVerifier([
    'checkpoint',
    write('checkpoint.txt', note),
    ...vkeys.flatMap((vkey) => ['--vkey', vkey]),
  ])
}

test('names origin, size, root and signers of a checkpoint', () => {
  const witness = createWitnessKey('witness.example/w', Date.UTC(2026, 1, 3) / 1_000)
  const stranger = createNoteKey('stranger.example')
  const note = signCheckpoint(leavesOf(rows), [key, witness, stranger])
  const { code, out } = runCheckpoint(note, witness.vkey, key.vkey)
  assert.equal(code, 0, out)
  assert(out.includes(`of ${key.name} signed the ledger of 20 events`))
  assert(out.includes(treeRoot(leavesOf(rows)).toString('base64')))
  assert.match(out, /The witness witness.example\/w saw this ledger at 2026-02-03T00:00:00.000Z/)
  assert.match(out, /Not proven:.*stranger.example \(key ID [0-9a-f]{8}\)/s)
  // The JSON form of the same checkpoint.
  assert.equal(runCheckpoint(JSON.stringify({ note, vkey: stranger.vkey }), key.vkey).code, 0)
  assert.equal(runCheckpoint(signCheckpoint([], [key]), key.vkey).code, 0)
})

test('accepts a checkpoint during a key rotation with either key', () => {
  const next = createNoteKey(key.name)
  const note = signCheckpoint(leavesOf(rows), [key, next])
  for (const vkeys of [[key.vkey], [next.vkey], [key.vkey, next.vkey]]) {
    assert.equal(runCheckpoint(note, ...vkeys).code, 0)
  }
})

test('rejects every change of a signed checkpoint', () => {
  const [body = ''] = checkpoint.split('\n\n')
  const root = base64([flipped(treeRoot(leavesOf(rows)))]).join('')
  for (const changed of [
    checkpoint.replace('\n20\n', '\n19\n'),
    checkpoint.replace('\n20\n', '\n020\n'),
    checkpoint.replace(body.split('\n')[2] ?? '', root),
    checkpoint.replace('\n\n', '\nextension\n\n'),
    checkpoint.replace('annals.example', 'annals.Example'),
  ]) {
    assert.notEqual(changed, checkpoint)
    assert.equal(runCheckpoint(changed, key.vkey).code, 1, changed)
  }
  const witness = createWitnessKey('witness.example/w', 1)
  const cosigned = signCheckpoint(leavesOf(rows), [key, witness])
  const [line = ''] = cosigned.split('\n').slice(-2)
  const otherTime = createWitnessKey('witness.example/w', 2).signatureOf('other').trimEnd()
  const bytes = Buffer.from(line.split(' ')[2] ?? '', 'base64')
  const wrong = Buffer.concat([
    bytes.subarray(0, 4),
    Buffer.from(otherTime.split(' ')[2] ?? '', 'base64').subarray(4),
  ])
  const swapped = cosigned.replace(bytes.toString('base64'), wrong.toString('base64'))
  const { code, out } = runCheckpoint(swapped, key.vkey, witness.vkey)
  assert.equal(code, 1)
  assert.match(out, /the signature of witness.example\/w is wrong/)
})

test('cannot judge a checkpoint without the key of its origin', () => {
  const foreign = createNoteKey(key.name)
  const otherName = createNoteKey('annals.example/other')
  const witness = createWitnessKey('witness.example/w', 1)
  const forged = signCheckpoint(leavesOf(rows), [foreign])
  const otherOrigin = signNote(`other\n20\n${base64([treeRoot(leaves)]).join('')}\n`, [key])
  for (const [note, ...vkeys] of [
    [checkpoint],
    [checkpoint, foreign.vkey],
    [checkpoint, otherName.vkey],
    [forged, key.vkey],
    [otherOrigin, key.vkey],
    [signCheckpoint(leavesOf(rows), [key, witness]), witness.vkey],
    [checkpoint, `${key.vkey.slice(0, -4)}AAA=`],
    [checkpoint, `${key.vkey.slice(0, -4)}${key.vkey.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`],
    [checkpoint, 'nonsense'],
    [checkpoint.trimEnd(), key.vkey],
    [checkpoint.split('\n\n')[0] ?? '', key.vkey],
    [checkpoint.replace('— ', '- '), key.vkey],
    ['{}', key.vkey],
  ] satisfies [string, ...string[]][]) {
    const { code, out, err } = runCheckpoint(note ?? '', ...vkeys)
    assert.equal(code, 2, out)
    assert.match(err, /^CANNOT JUDGE: .+\.\n$/)
  }
})

function runConsistency(
  older: string,
  newer: string,
  proof: object,
  otherVkey = key.vkey,
): Verdict {
  const files = [write('old.txt', older), write('new.txt', newer)]
  return runVerifier([
    'consistency',
    ...files,
    '--proof',
    write('consistency.json', proof),
    '--vkey',
    key.vkey,
    '--vkey',
    otherVkey,
  ])
}

function proofOf(ledger: readonly Row[], from: number, to: number) {
  return { from, to, hashes: base64(consistencyPath(from, leavesOf(ledger), to)) }
}

function checkpointOf(ledger: readonly Row[], size: number, keys: readonly NoteKey[] = [key]) {
  return signCheckpoint(leavesOf(ledger).slice(0, size), keys)
}

test('proves that a ledger extends another, and finds a rewritten or shortened one', () => {
  for (const [from, to] of [
    [0, 20],
    [1, 20],
    [8, 9],
    [13, 20],
    [20, 20],
  ] as const) {
    const proof = proofOf(rows, from, to)
    const good = runConsistency(checkpointOf(rows, from), checkpointOf(rows, to), proof)
    assert.equal(good.code, 0, good.out + good.err)
    assert.match(good.out, /^PROVEN: The ledger of ".*" extends the one of/)
    assert(
      good.out.includes(`The newer one has ${to - from} event${to - from === 1 ? '' : 's'} more.`),
    )
  }
  const fifth = rows[4] ?? assert.fail()
  const other = rechainRows(rows.with(4, { ...fifth, action: 'x' }))
  const forked = runConsistency(
    checkpointOf(rows, 13),
    checkpointOf(other, 20),
    proofOf(other, 13, 20),
  )
  assert.equal(forked.code, 1)
  assert.match(forked.out, /first 13 events of annals.example\/.* were rewritten/)
  const same = runConsistency(
    checkpointOf(rows, 20),
    checkpointOf(other, 20),
    proofOf(rows, 20, 20),
  )
  assert.match(
    same.out,
    /^TAMPERED: The two checkpoints have the same size, 20, but different roots/,
  )
  const cut = runConsistency(checkpointOf(rows, 20), checkpointOf(rows, 13), proofOf(rows, 13, 20))
  assert.match(cut.out, /^TAMPERED: .* has 13 events, but the older one has 20 events/)
  const wrongSizes = runConsistency(
    checkpointOf(rows, 3),
    checkpointOf(rows, 9),
    proofOf(rows, 4, 9),
  )
  assert.equal(wrongSizes.code, 2)
  const elsewhere = ledgerKey(OTHER_WORKSPACE)
  const foreign = runConsistency(
    checkpoint,
    checkpointOf(rows, 20, [elsewhere]),
    proofOf(rows, 20, 20),
    elsewhere.vkey,
  )
  assert.equal(foreign.code, 2)
})

type Proof = ReturnType<typeof jsonProof>

function jsonProof(row: Row, ledger: readonly Row[] = rows) {
  const hashes = base64(inclusionPath(row.seq - 1, leavesOf(ledger)))
  const note = checkpointOf(ledger, ledger.length)
  return {
    event: row,
    index: row.seq - 1,
    size: ledger.length,
    hashes,
    checkpoint: note,
    vkey: key.vkey,
  }
}

function runProof(proof: object, vkey = key.vkey): Verdict {
  return runVerifier(['proof', write('proof.json', proof), '--vkey', vkey])
}

test('proves each event of a ledger, and says what the proof does not cover', () => {
  for (const row of rows) {
    const { code, out } = runProof(jsonProof(row))
    assert.equal(code, 0, out)
    assert(
      out.startsWith(`PROVEN: Event ${row.id} (seq ${row.seq}) is in the ledger of ${key.name}.`),
    )
    assert.match(out, /Not proven:\n.*That the content is true/)
  }
})

test('finds every change of a proof', () => {
  const row = rows[10] ?? assert.fail()
  const proof = jsonProof(row)
  const elsewhere = signCheckpoint(leavesOf(rows), [ledgerKey(OTHER_WORKSPACE)])
  const changes: ((proof: Proof) => object)[] = [
    (proof) => ({ ...proof, index: proof.index + 1 }),
    (proof) => ({ ...proof, size: proof.size - 1 }),
    (proof) => ({ ...proof, hashes: proof.hashes.slice(1) }),
    (proof) => ({ ...proof, hashes: proof.hashes.slice(0, -1) }),
    (proof) => ({ ...proof, hashes: [...proof.hashes, proof.hashes[0]] }),
    (proof) => ({ ...proof, hashes: proof.hashes.toReversed() }),
    (proof) => ({ ...proof, hashes: proof.hashes.with(0, 'AAAA') }),
    // An older checkpoint, replayed.
    (proof) => ({ ...proof, checkpoint: checkpointOf(rows, 15) }),
    (proof) => ({ ...proof, checkpoint: proof.checkpoint.replace('\n20\n', '\n21\n'), size: 21 }),
    (proof) => ({ ...proof, event: { ...row, action: 'other' } }),
    (proof) => ({ ...proof, event: rehashRow({ ...row, action: 'other' }) }),
    (proof) => ({ ...proof, event: { ...row, metadata: { a: 1 } } }),
    (proof) => ({ ...proof, event: { ...row, note: 'added' } }),
  ]
  for (const change of changes) {
    const { code, out, err } = runProof(change(proof))
    assert.equal(code, 1, `${String(change)}: ${err}`)
    assert.match(out, /^TAMPERED: .+\.\n$/)
  }
  assert.equal(runProof({ ...proof, checkpoint: elsewhere }).code, 2)
  const rewritten = rechainRows(rows.with(3, { ...row, id: rows[3]?.id ?? '', action: 'new' }))
  const moved = rewritten[10] ?? assert.fail()
  const { code, out } = runProof({ ...jsonProof(moved, rewritten), checkpoint })
  assert.equal(code, 1)
  assert(out.includes(`Event ${row.id} (seq 11): the proof does not lead to the signed root`))
})

test('does not accept an event at another place of the ledger than its seq', () => {
  const [first, second, ...others] = rows
  assert(first && second)
  const moved = leavesOf([second, first, ...others])
  const hashes = base64(inclusionPath(1, moved))
  const proof = { ...jsonProof(first), index: 1, hashes, checkpoint: signCheckpoint(moved, [key]) }
  const { code, out } = runProof(proof)
  assert.equal(code, 1)
  assert.match(out, /the proof is for seq 2, which is another event/)
})

test('does not accept the checkpoint of another workspace, even with its key', () => {
  const elsewhere = ledgerKey(OTHER_WORKSPACE)
  const proof = {
    ...jsonProof(rows[4] ?? assert.fail()),
    checkpoint: checkpointOf(rows, 20, [elsewhere]),
  }
  const { code, out } = runProof(proof, elsewhere.vkey)
  assert.equal(code, 1)
  assert.match(out, new RegExp(`which is not the ledger of workspace ${WORKSPACE}`))
})

test('verifies a C2SP tlog-proof with the event or its hash', () => {
  const row = rows[6] ?? assert.fail()
  const lines = ['index 6', ...base64(inclusionPath(6, leavesOf(rows)))]
  const text = `c2sp.org/tlog-proof@v1\n${lines.join('\n')}\n\n${checkpoint}`
  const prove = (text: string, ...options: string[]) =>
    runVerifier(['proof', write('event.tlog-proof', text), '--vkey', key.vkey, ...options])
  const event = write('event.json', row)
  assert.equal(prove(text, '--event', event).code, 0)
  assert.equal(prove(text, '--hash', row.hash).code, 0)
  assert.equal(prove(text).code, 2)
  assert.equal(prove(text, '--hash', rows[7]?.hash ?? '').code, 1)
  assert.equal(prove(text, '--event', write('other.json', rows[7] ?? {})).code, 1)
  assert.equal(prove(text.replace('index 6', 'index 06'), '--event', event).code, 2)
  assert.equal(prove(text.replace('@v1', '@v2'), '--event', event).code, 2)
  assert.equal(prove(text.replace(`${lines[1]}\n`, ''), '--event', event).code, 1)
  const extra = Buffer.from(JSON.stringify(row)).toString('base64')
  assert.equal(prove(text.replace('\nindex', `\nextra ${extra}\nindex`)).code, 0)
  assert.equal(
    createHash('sha256')
      .update(`\0${coreTextOf(row)}`)
      .digest('hex'),
    row.hash,
  )
})

test('explains wrong arguments and unreadable files', () => {
  assert.equal(runVerifier(['--help']).code, 0)
  for (const args of [
    [],
    ['verify'],
    ['checkpoint'],
    ['checkpoint', 'a', 'b'],
    ['checkpoint', '/nonexistent/file', '--vkey', key.vkey],
    ['checkpoint', write('empty.txt', ''), '--vkey', key.vkey],
    ['checkpoint', 'a', '--vkey'],
    ['checkpoint', 'a', '--manifest', 'b'],
    ['consistency', 'a', 'b', '--vkey', key.vkey],
    ['proof', write('list.json', '[]'), '--vkey', key.vkey],
    ['proof', write('binary', Buffer.from([0xff, 0xfe])), '--vkey', key.vkey],
    ['export', '/nonexistent/file'],
    ['export', write('empty.jsonl', '')],
    ['export', write('packed.gz', Buffer.from([0x1f, 0x8b, 0x0a]))],
    ['export', '/'],
    ['export', write('a.csv', 'id,seq,timestamp\n')],
  ]) {
    const { code, err } = runVerifier(args)
    assert.equal(code, 2, args.join(' '))
    assert.match(err, /^CANNOT JUDGE: .+\.\n$/, args.join(' '))
    assert.doesNotMatch(err, /Unexpected/)
  }
})
