import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { EMPTY_ROOT, nodeHash } from '../../src/ledger/tree/merkle.ts'
import { signCheckpoint, signingKeyOf } from '../../src/outlet/proof/signing-key.ts'
import { newId } from '../../src/platform/id.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import {
  checkNoteSignature,
  parseCheckpoint,
  parseNoteKey,
} from '../../src/platform/tlog/signed-note.ts'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'

const PREFIX = 'log.example/'
/** Its base64 has plus signs, which also separate the parts of a verifier key. */
const logKey =
  Array.from({ length: 100 }, (_, nth) =>
    signingKeyOf(new Secret(hash('sha256', `log ${nth}`, 'buffer'))),
  ).find(({ publicKey }) => /\+.*\+/.test(publicKey.toString('base64'))) ?? assert.fail()
const LOG_KEY = logKey.publicKey.toString('base64')

const folder = await mkdtempDisposable(join(tmpdir(), 'annals-witness-'))
after(() => folder.remove())
const ARGUMENTS = [
  'witness',
  '--listen=127.0.0.1:0',
  `--log-key=${LOG_KEY}`,
  `--origin-prefix=${PREFIX}`,
  '--name=witness.example',
  `--folder=${folder.path}`,
]

/** A real witness with a state that outlives it. */
async function startWitness() {
  const process = new AnnalsProcess(ARGUMENTS, {})
  const [, url = '', vkey = ''] = await process.printed(/"url":"([^"]+)","vkey":"([^"]+)"/)
  const key = parseNoteKey(vkey)
  assert(key)
  const add = async (body: string) => {
    const response = await fetch(`${url}/add-checkpoint`, { method: 'POST', body })
    return { status: response.status, type: response.headers, text: await response.text() }
  }
  return { process, url, key, add, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() }
}

const LEAVES = Array.from({ length: 4 }, (_, nth) => hash('sha256', `${nth}`, 'buffer'))
const [a = EMPTY_ROOT, b = EMPTY_ROOT, c = EMPTY_ROOT, d = EMPTY_ROOT] = LEAVES
/** The roots of the first trees of a log. */
const ROOTS = [EMPTY_ROOT, a, nodeHash(a, b), nodeHash(nodeHash(a, b), c)]
const FOUR = nodeHash(nodeHash(a, b), nodeHash(c, d))

const newOrigin = () => `${PREFIX}${newId()}`
const noteOf = (origin: string, size: number, root = ROOTS[size] ?? FOUR, keys = [logKey]) =>
  signCheckpoint({ origin, size, root }, keys)
const requestOf = (oldSize: number, proof: readonly Buffer[], note: string) =>
  [`old ${oldSize}`, ...proof.map((bytes) => bytes.toString('base64')), '', note].join('\n')

test('cosigns checkpoints that extend the last one, and remembers them when it restarts', async () => {
  const origin = newOrigin()
  await using first = await startWitness()
  const note = noteOf(origin, 2)
  const { status, text } = await first.add(requestOf(0, [], note))
  assert.equal(status, 200, text)
  const cosigned = parseCheckpoint(`${note}${text}`)
  assert(cosigned)
  assert.equal(checkNoteSignature(cosigned, first.key), 'valid')
  assert.equal((await first.add(requestOf(2, [c], noteOf(origin, 3)))).status, 200)
  first.process.signal('SIGKILL')
  await first.process.exited

  await using again = await startWitness()
  assert.deepEqual(again.key, first.key)
  const stale = await again.add(requestOf(2, [], note))
  assert.deepEqual([stale.status, stale.text], [409, '3\n'])
  assert.equal(stale.type.get('content-type'), 'text/x.tlog.size')
  const extended = requestOf(3, [c, d, nodeHash(a, b)], noteOf(origin, 4))
  assert.equal((await again.add(extended)).status, 200)
})

test('cosigns neither a fork, a shorter tree nor a forged checkpoint', async () => {
  const origin = newOrigin()
  await using witness = await startWitness()
  const { add } = witness
  assert.equal((await add(requestOf(0, [], noteOf(origin, 2)))).status, 200)
  const fork = nodeHash(b, a)
  assert.equal((await add(requestOf(2, [], noteOf(origin, 2, fork)))).status, 422, 'same size')
  assert.equal((await add(requestOf(2, [c], noteOf(origin, 3, fork)))).status, 422, 'larger')
  assert.equal((await add(requestOf(2, [], noteOf(origin, 3)))).status, 422, 'without a proof')
  assert.equal((await add(requestOf(2, [], noteOf(origin, 1)))).status, 400, 'shorter')
  assert.equal((await add(requestOf(0, [], noteOf(origin, 1)))).status, 409, 'shorter, as new')
  const stranger = signingKeyOf(new Secret(randomBytes(32)))
  assert.equal((await add(requestOf(2, [c], noteOf(origin, 3, ROOTS[3], [stranger])))).status, 403)
  const edited = noteOf(origin, 3).replace('\n3\n', '\n4\n')
  assert.equal((await add(requestOf(2, [c], edited))).status, 403)
  const elsewhere = 'other.example/log'
  assert.equal((await add(requestOf(0, [], noteOf(elsewhere, 2)))).status, 404)
  const notEmpty = newOrigin()
  assert.equal((await add(requestOf(0, [], noteOf(notEmpty, 0, a)))).status, 422)
  assert.equal((await add(requestOf(2, [c], noteOf(origin, 3)))).status, 200, 'the honest one')
})

test('cosigns only checkpoints that extend each other, even if different ones arrive at once', async () => {
  const origin = newOrigin()
  await using witness = await startWitness()
  const roots = Array.from({ length: 8 }, () => randomBytes(32))
  const answers = await Promise.all(
    roots.map((root) => witness.add(requestOf(0, [], noteOf(origin, 5, root)))),
  )
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join())
  assert(
    statuses.every((status) => [200, 409, 503].includes(status)),
    statuses.join(),
  )
})

test('refuses bodies that are not requests, and other paths', async () => {
  await using witness = await startWitness()
  const note = noteOf(newOrigin(), 2)
  const bad = [
    '',
    'old 0\n',
    note,
    requestOf(0, [], note).replace('old 0', 'old 00'),
    requestOf(0, [Buffer.alloc(31)], note),
    requestOf(
      0,
      Array.from({ length: 64 }, () => a),
      note,
    ),
    'x'.repeat(60_000),
  ]
  for (const body of bad) assert.equal((await witness.add(body)).status, 400, body.slice(0, 80))
  // The response arrives although the body is still being sent.
  for (const size of [70_000, 1_000_000]) {
    assert.equal((await witness.add('x'.repeat(size))).status, 413)
  }
  assert.equal((await fetch(`${witness.url}/nothing`)).status, 404)
  assert.equal((await fetch(`${witness.url}/add-checkpoint`)).status, 405)
  const page = await fetch(witness.url)
  assert.match(await page.text(), /^witness\.example\+[0-9a-f]{8}\+B/)
})

test('explains wrong arguments', async () => {
  await using other = await startWitness()
  const cases: [string[], RegExp][] = [
    [['--listen', 'nowhere'], /--listen must be an address and a port/],
    [['--log-key', 'x'], /--log-key must be a public key of the log/],
    [['--log-key', `a+00000000+${LOG_KEY}`], /--log-key must be a public key of the log/],
    [['--origin-prefix', 'log.example'], /--origin-prefix must end with a slash/],
    [['--name', 'a b'], /--name must have no spaces/],
    [
      ['--listen', new URL(other.url).host],
      /Port \d+ on 127\.0\.0\.1 is already in use\..* --listen/,
    ],
  ]
  for (const [options, sentence] of cases) {
    const { code, stderr } = await runAnnals([...ARGUMENTS, ...options])
    assert.equal(code, 1)
    assert.match(stderr, sentence)
  }
})
