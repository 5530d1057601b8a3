import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Annals } from './index.ts'

const ID = '018f0000-0000-7000-8000-00000000c001'
/** The first two always respond with 403. The others are for orchestrators and for other log clients. */
const LEFT_OUT = [
  'createWorkspaceKey',
  'rotateKey',
  'getHealth',
  'getReady',
  'getTlogCheckpoint',
  'getTile',
]

const sent: string[] = []
const createClient = (baseUrl: string) =>
  new Annals({
    apiKey: 'key',
    baseUrl,
    fetch: async (url, options) => {
      sent.push(`${options?.method} ${new URL(url instanceof Request ? url.url : url).pathname}`)
      const lists = { data: [], results: [{}], workspaces: [], projects: [] }
      return Response.json({ ...lists, nextCursor: null, next: 0 })
    },
  })
const annals = createClient('http://annals.example/base/')

test('every operation of the API has a method, and no method calls anything else', async () => {
  const { events, webhooks, exports, proofs, workspaces, keys } = annals
  const input = { category: 'c', action: 'a' }
  const job = { source: 'HOT', format: 'JSONL' } as const
  const window = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' }
  await events.create(input)
  await events.batch([input])
  await events.list().take(1)
  await events.get(ID)
  for await (const _ of events.feed({ workspaceId: ID })) assert.fail()
  await webhooks.create(ID, { url: 'https://hooks.example' })
  await webhooks.list(ID)
  await webhooks.get(ID)
  await webhooks.update(ID, { name: 'n' })
  await webhooks.delete(ID)
  await webhooks.enable(ID)
  await webhooks.disable(ID)
  await webhooks.rotateSecret(ID)
  await webhooks.finishRotation(ID)
  await webhooks.test(ID)
  await webhooks.deliveries(ID).take(1)
  await webhooks.delivery(ID, ID)
  await webhooks.redeliver(ID, ID)
  await webhooks.redeliverWindow(ID, window)
  await exports.create(job)
  await exports.list().take(1)
  await exports.get(ID)
  await exports.preflight(job)
  await exports.rerun(ID)
  await exports.cancel(ID)
  await exports.manifest(ID)
  await exports.stream(ID)
  await proofs.event(ID)
  await proofs.checkpoint(ID)
  await proofs.checkpointText(ID)
  await proofs.consistency(ID, { from: 1, to: 2 })
  await proofs.serviceKeys()
  await workspaces.list()
  await workspaces.get(ID)
  await workspaces.projects(ID)
  await workspaces.eventTypes(ID).take(1)
  await keys.status()

  const called = new Set(sent.map((line) => line.replaceAll(ID, '{}').replace('/base/', '/')))
  assert.deepEqual([...called].toSorted(), documentedOperations())
})

function documentedOperations(): string[] {
  const path = join(import.meta.dirname, '../../openapi/v1.json')
  const { paths }: { paths: Record<string, Record<string, { operationId: string }>> } = JSON.parse(
    readFileSync(path, 'utf8'),
  )
  return Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { operationId }]) => operationId && !LEFT_OUT.includes(operationId))
        .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '{}')}`),
    )
    .toSorted()
}

test('an ID can’t change the path of a request', async () => {
  sent.length = 0
  await annals.events.get('../keys/status?a#b')
  assert.deepEqual(sent, ['GET /base/v1/events/..%2Fkeys%2Fstatus%3Fa%23b'])
})

test('a base URL can end in a slash or in the version of the API', async () => {
  for (const [path, base] of [
    ['', ''],
    ['/', ''],
    ['/v1', ''],
    ['/v1/', ''],
    ['/base', '/base'],
    ['/base/v1', '/base'],
    ['/base/v1//', '/base'],
    ['/v1/base', '/v1/base'],
    ['/apiv1', '/apiv1'],
    ['/v11', '/v11'],
  ]) {
    sent.length = 0
    await createClient(`https://annals.example${path}`).keys.status()
    assert.deepEqual(sent, [`GET ${base}/v1/keys/status`], path)
  }
})

test('a missing key or address fails at once, without the key in the message', () => {
  for (const apiKey of [undefined, '', 'a b', 'a\n']) {
    assert.throws(() => new Annals({ apiKey, baseUrl: 'http://x' }), /apiKey is missing/)
  }
  for (const baseUrl of ['', 'annals.example', 'ftp://annals.example']) {
    assert.throws(() => new Annals({ apiKey: 'secret', baseUrl }), /^TypeError: baseUrl must be/)
  }
  assert(!JSON.stringify(new Annals({ apiKey: 'secret', baseUrl: 'http://x' })).includes('secret'))
})
