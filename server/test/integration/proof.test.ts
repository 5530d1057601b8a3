import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, test } from 'node:test'
import { rootOfInclusion } from '../../src/ledger/tree/proof-path.ts'
import { newId } from '../../src/platform/id.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import {
  createSigner,
  openNote,
  readHashes,
  sendEvents,
  signWhole,
  treeRoot,
} from '../harness/proof/proof.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

// An API node doesn't sign on its own, so the tests decide what is signed.
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const run = (sql: string) => query(annals.database.connection, sql)

const EVENTS = 700
const company = await annals.createCompany({ company: 'A', workspaces: ['One', 'Two'] })
const { companyKey, workspaceKey: key, workspace } = company
await sendEvents(annals, key, EVENTS)
await signWhole(createSigner(annals), workspace.id)
const leaves = await readHashes(annals, workspace.id)
const events = await walkEvents(annals, key)

const base = `/v1/workspaces/${workspace.id}`
const get = (path: string, accept = '*/*', as = key) =>
  annals.call('GET', path, { key: as, headers: { accept } })

async function fetchBytes(path: string): Promise<{ response: Response; bytes: Buffer }> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${annals.url}${path}`, { headers })
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

test('returns the checkpoint as a signed note, in text or in JSON', async () => {
  const { json, headers } = await get(`${base}/checkpoint`, 'application/json')
  assert.deepEqual(Object.keys(json), ['origin', 'size', 'root', 'note', 'vkey', 'signedAt'])
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.deepEqual(openNote(json.note, json.vkey), {
    origin: `annals.local/${workspace.id}`,
    size: EVENTS,
    root: treeRoot(leaves),
  })
  for (const [path, accept] of [
    ['checkpoint', 'text/plain'],
    ['checkpoint', '*/*'],
    ['tlog/checkpoint', 'application/json'],
  ] as const) {
    const response = await get(`${base}/${path}`, accept, companyKey)
    assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
    assert.equal(response.text, json.note)
  }
})

test('the proof of an event leads from its core to the signed root', async () => {
  const checkpoint = (await get(`${base}/checkpoint`)).text
  for (const event of [events[0], events[300], events.at(-1)]) {
    const { status, json, text } = await get(`/v1/events/${event.id}/proof`)
    assert.equal(status, 200, text)
    assert.deepEqual(
      [json.event.id, json.index, json.size, json.checkpoint],
      [event.id, event.seq - 1, EVENTS, checkpoint],
    )
    assert.deepEqual(Object.keys(json.event.sealed), ['actor', 'metadata'])
    const hashes = json.hashes.map((line: string) => Buffer.from(line, 'base64'))
    const leaf = Buffer.from(json.event.hash, 'hex')
    const root = rootOfInclusion({ index: json.index, size: json.size, leaf }, hashes)
    assert.equal(root?.toString('base64'), openNote(json.checkpoint, json.vkey).root)
    const asText = await get(`/v1/events/${event.id}/proof`, 'text/plain')
    assert.equal(
      asText.text,
      `c2sp.org/tlog-proof@v1\nindex ${json.index}\n${json.hashes.join('\n')}\n\n${checkpoint}`,
    )
    assert(asText.text.length <= 2_000, `${asText.text.length} bytes`)
  }
})

test('tiles contain the hashes, and their entries hash to them', async () => {
  const { response, bytes } = await fetchBytes(`${base}/tlog/tile/0/001`)
  assert.equal(response.headers.get('content-type'), 'application/octet-stream')
  assert.match(response.headers.get('cache-control') ?? '', /^private, .*immutable$/)
  assert.deepEqual(bytes, Buffer.concat(leaves.slice(256, 512)))
  const partial = await fetchBytes(`${base}/tlog/tile/0/002.p/188`)
  assert.deepEqual(partial.bytes, Buffer.concat(leaves.slice(512)))
  const above = await fetchBytes(`${base}/tlog/tile/1/000.p/2`)
  assert.equal(above.bytes.toString('base64', 0, 32), treeRoot(leaves.slice(0, 256)))
  for (const [path, expected] of [
    ['entries/000', leaves.slice(0, 256)],
    ['entries/002.p/188', leaves.slice(512)],
  ] as const) {
    const { bytes: bundle } = await fetchBytes(`${base}/tlog/tile/${path}`)
    assert.deepEqual(entriesOf(bundle).map(leafHash), expected)
    assert(!bundle.includes('"ada"'), 'entries contain no personal data')
  }
})

function entriesOf(bundle: Buffer): Buffer[] {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length;) {
    const end = at + 2 + bundle.readUInt16BE(at)
    entries.push(bundle.subarray(at + 2, end))
    at = end
  }
  return entries
}

const leafHash = (entry: Buffer): Buffer =>
  hash('sha256', Buffer.concat([Buffer.of(0), entry]), 'buffer')

test('a tile that the signed tree does not have is not found', async () => {
  for (const path of [
    '0/002',
    '0/002.p/189',
    '0/003',
    '1/000',
    '2/000.p/1',
    'entries/002',
    'x',
    '',
  ]) {
    const { status, json } = await get(`${base}/tlog/tile/${path}`)
    assert.deepEqual([status, json.code], [404, 'not_found'], path)
  }
})

test('consistency proofs are those of RFC 6962, up to the signed size', async () => {
  const { json } = await get(`${base}/consistency?from=512&to=700`)
  assert.deepEqual(json, { from: 512, to: EVENTS, hashes: [treeRoot(leaves.slice(512))] })
  assert.deepEqual((await get(`${base}/consistency?from=512`)).json, json)
  assert.deepEqual((await get(`${base}/consistency?from=0&to=0`)).json.hashes, [])
  for (const bad of ['from=1&to=701', 'from=5&to=4', 'to=5', 'from=-1', 'from=x', 'from=1.5']) {
    const { status, json: body } = await get(`${base}/consistency?${bad}`)
    assert.deepEqual([status, body.code], [400, 'invalid_request'], bad)
  }
})

test('returns a conflict for an event that is not signed yet, until it is signed', async () => {
  const { workspace: other, workspaceKey } = await annals.createCompany()
  const path = `/v1/workspaces/${other.id}/checkpoint`
  await sendEvents(annals, workspaceKey, 1)
  const [event] = await walkEvents(annals, workspaceKey)
  for (const unsigned of [path, `/v1/events/${event.id}/proof`]) {
    const { status, json, headers } = await get(unsigned, '*/*', workspaceKey)
    assert.deepEqual([status, json.code, headers.get('retry-after')], [409, 'conflict', '5'])
  }
  await signWhole(createSigner(annals), other.id)
  assert.equal((await get(path, '*/*', workspaceKey)).status, 200)
  await sendEvents(annals, workspaceKey, 1)
  const [newest] = await walkEvents(annals, workspaceKey)
  const { status } = await get(`/v1/events/${newest.id}/proof`, '*/*', workspaceKey)
  assert.equal(status, 409)
})

test('an empty workspace gets a checkpoint of size 0 when it is requested', async () => {
  const { id, workspaceKey } = company.workspaces[1] ?? assert.fail()
  const path = `/v1/workspaces/${id}/checkpoint`
  const { json, text } = await get(path, 'application/json', workspaceKey)
  assert.equal(json.size, 0, text)
  openNote(json.note, json.vkey)
  assert.equal((await get(path, '*/*', workspaceKey)).text, json.note)
})

test('no key sees the checkpoint, tiles or proofs of another tenant or workspace', async () => {
  const stranger = await annals.createCompany({ company: 'B' })
  const sibling = company.workspaces[1]?.workspaceKey ?? ''
  const ends = [
    'checkpoint',
    'consistency?from=1',
    'tlog/checkpoint',
    'tlog/tile/0/000',
    'tlog/tile/entries/000',
  ]
  for (const as of [stranger.companyKey, stranger.workspaceKey, sibling]) {
    const paths = [...ends.map((end) => `${base}/${end}`), `/v1/events/${events[0].id}/proof`]
    const unknown = [
      ...ends.map((end) => `/v1/workspaces/${newId()}/${end}`),
      `/v1/events/${newId()}/proof`,
    ]
    for (const [nth, path] of paths.entries()) {
      const foreign = await get(path, '*/*', as)
      const missing = await get(unknown[nth] ?? '', '*/*', as)
      assert.equal(foreign.status, 404, path)
      const { traceId: _, ...body } = foreign.json
      const { traceId: __, ...other } = missing.json
      assert.deepEqual(body, other, path)
    }
  }
})

test('a changed tile or event gives no proof', async () => {
  const { workspace: own, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, 10)
  await signWhole(createSigner(annals), own.id)
  const [event] = await walkEvents(annals, workspaceKey)
  const path = `/v1/events/${event.id}/proof`
  assert.equal((await get(path, '*/*', workspaceKey)).status, 200)
  const refusalOf = async (eventId: string) => {
    const { status, json } = await get(`/v1/events/${eventId}/proof`, '*/*', workspaceKey)
    return [status, json.code]
  }
  const second = (await walkEvents(annals, workspaceKey))[1]
  await run(`update event set hash = sha256(hash) where id = '${second.id}'`)
  assert.deepEqual(await refusalOf(second.id), [503, 'unavailable'])
  await run(`update tree_tile set hashes = set_byte(hashes, 2, 255 - get_byte(hashes, 2))
              where workspace_id = '${own.id}'`)
  assert.deepEqual(await refusalOf(event.id), [503, 'unavailable'])
})

test('proofs and entries of archived events are the same as before', async () => {
  const { workspace: own, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, 20)
  await signWhole(createSigner(annals), own.id)
  const [event] = await walkEvents(annals, workspaceKey)
  const paths = [
    `/v1/events/${event.id}/proof`,
    `/v1/workspaces/${own.id}/tlog/tile/entries/000.p/20`,
  ]
  const read = () =>
    Promise.all(paths.map(async (path) => (await get(path, '*/*', workspaceKey)).text))
  const before = await read()
  await archiveAll(annals)
  assert.equal((await readHashes(annals, own.id)).length, 0)
  assert.deepEqual(await read(), before)
})

test('the public keys need no key', async () => {
  const { json } = await annals.call('GET', '/.well-known/annals.json')
  const { json: checkpoint } = await get(`${base}/checkpoint`, 'application/json')
  const [current] = json.publicKeys
  assert.deepEqual([json.publicKeys.length, current.to], [1, null])
  const vkey = Buffer.from(checkpoint.vkey.split('+').slice(2).join('+'), 'base64')
  assert.equal(vkey.subarray(1).toString('base64'), current.publicKey)
  for (const format of ['c2sp.org/tlog-proof@v1', 'c2sp.org/tlog-cosignature']) {
    assert(json.formats.includes(format), format)
  }
})

test('without an archive nothing is signed, and the routes say so', async () => {
  const bare = await startTestApp({ hasArchive: false, env: { ANNALS_CHECKPOINT_SECONDS: '1' } })
  await using _bare: TestApp = bare
  const { workspace: own, workspaceKey } = await bare.createCompany()
  const { status, json, headers } = await bare.call('GET', `/v1/workspaces/${own.id}/checkpoint`, {
    key: workspaceKey,
  })
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  assert(Number(headers.get('retry-after')) > 0)
  const keys = await bare.call('GET', '/.well-known/annals.json')
  assert.deepEqual([keys.status, keys.json.publicKeys], [200, []])
})
