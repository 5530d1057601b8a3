import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createConnector, ConnectError } from '../../src/outlet/webhook/send/connector.ts'
import {
  NameResolver,
  type NameResolverOptions,
} from '../../src/outlet/webhook/send/name-resolver.ts'
import { readRetryAfter } from '../../src/outlet/webhook/dispatch/retry-schedule.ts'
import { Sender } from '../../src/outlet/webhook/send/sender.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { type NameAnswer, startNameServer } from '../harness/webhook/name-server.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'

/** Stopping takes no longer than this, however long name servers hang. */
const STOP_MS_MAX = 2_000
/** Enough for a working name server, even on a busy machine. */
const LOOKUP_MS_MAX = 1_500

const NAMES: Record<string, NameAnswer> = {
  'receiver.test': ['192.0.2.1', '2001:db8::1', '192.0.2.2', '2001:db8::2', '192.0.2.3'],
  'four.test': ['192.0.2.4'],
  'six.test': ['2001:db8::6'],
  'empty.test': [],
  'broken.test': 'broken',
  'local.test': ['127.0.0.1'],
}

function answerTo(name: string, type: string): NameAnswer {
  if (name.endsWith('.slow.test')) return 'silence'
  if (name === 'half.test') return type === 'A' ? ['192.0.2.5'] : 'broken'
  return NAMES[name] ?? 'unknown'
}

/** A resolver with its own name server. */
async function startNames(options: Partial<NameResolverOptions> = {}) {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startNameServer(answerTo))
  const resolver = stack.use(
    new NameResolver({
      mode: 'public',
      servers: [server.address],
      hostsFile: '/nonexistent',
      systemLookup: () => Promise.reject(new Error('No thread may be used.')),
      ...options,
    }),
  )
  const kept = stack.move()
  const addressesOf = async (name: string) =>
    (await resolver.resolve(name)).map(({ address }) => address)
  return { server, resolver, addressesOf, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

async function codeOf(resolving: Promise<unknown>): Promise<unknown> {
  const error = await resolving.then(
    () => null,
    (error: unknown) => error,
  )
  assert(error instanceof Error && 'code' in error, String(error))
  return error.code
}

const slowNames = (count: number) => Array.from({ length: count }, (_, nth) => `n${nth}.slow.test`)

test('returns the IPv4 and IPv6 addresses of a name in turn', async () => {
  await using names = await startNames()
  const all = ['192.0.2.1', '2001:db8::1', '192.0.2.2', '2001:db8::2', '192.0.2.3']
  assert.deepEqual(await names.addressesOf('receiver.test'), all)
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
  assert.deepEqual(await names.addressesOf('six.test.'), ['2001:db8::6'])
  assert.deepEqual(await names.addressesOf('half.test'), ['192.0.2.5'])
  assert.deepEqual(await names.resolver.resolve('six.test'), [
    { address: '2001:db8::6', family: 6 },
  ])
})

test('distinguishes a name without addresses from an unknown one and from a broken server', async () => {
  await using names = await startNames()
  assert.deepEqual(await names.addressesOf('empty.test'), [])
  assert.equal(await codeOf(names.addressesOf('unknown.test')), 'ENOTFOUND')
  assert.equal(await codeOf(names.addressesOf('broken.test')), 'ESERVFAIL')
})

test('concurrent callers for the same name share a lookup, and later ones get a new one', async () => {
  await using names = await startNames()
  const lookups = Array.from({ length: 20 }, () => names.addressesOf('four.test'))
  assert.equal(names.resolver.lookupCount, 1)
  for (const addresses of await Promise.all(lookups)) assert.deepEqual(addresses, ['192.0.2.4'])
  assert.deepEqual(names.server.questions.toSorted(), ['four.test A', 'four.test AAAA'])
  assert.equal(names.resolver.lookupCount, 0)
  await names.addressesOf('four.test')
  assert.equal(names.server.questions.length, 4)
})

test('a name whose server hangs times out, while others resolve', async () => {
  await using names = await startNames({ lookupMsMax: LOOKUP_MS_MAX })
  const hanging = slowNames(50).map((name) => codeOf(names.addressesOf(name)))
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
  assert.equal(names.resolver.lookupCount, 50)
  assert.deepEqual([...new Set(await Promise.all(hanging))], ['ETIMEOUT'])
  assert.equal(names.resolver.lookupCount, 0)
})

test('rejects a lookup beyond the limit, and accepts it once another has ended', async () => {
  await using names = await startNames({ lookupMsMax: LOOKUP_MS_MAX, lookupsMax: 3 })
  const hanging = slowNames(3).map((name) => codeOf(names.addressesOf(name)))
  assert.equal(await codeOf(names.addressesOf('four.test')), 'EBUSY')
  await Promise.all(hanging)
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
})

test('uses neither threads nor the hosts file for public destinations', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-hosts-'))
  const hostsFile = join(folder.path, 'hosts')
  await writeFile(hostsFile, '10.0.0.1 four.test unknown.test\n')
  const looked: string[] = []
  await using names = await startNames({
    hostsFile,
    lookupMsMax: LOOKUP_MS_MAX,
    systemLookup: (name) => Promise.reject(new Error(looked.push(name).toString())),
  })
  const hanging = slowNames(20).map((name) => codeOf(names.addressesOf(name)))
  assert(!process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap'))
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
  assert.equal(await codeOf(names.addressesOf('unknown.test')), 'ENOTFOUND')
  await Promise.all(hanging)
  assert.deepEqual(looked, [])
})

test('any destination: the hosts file comes first, then DNS, then the operating system', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-hosts-'))
  const hostsFile = join(folder.path, 'hosts')
  const lines = ['# 10.0.0.9 four.test', '10.0.0.1\tReceiver.test other # half.test', '::1 other']
  await writeFile(hostsFile, lines.join('\n'))
  const looked: string[] = []
  const systemLookup = (name: string) => {
    looked.push(name)
    return Promise.resolve([{ address: '10.0.0.2', family: 4 }])
  }
  await using names = await startNames({
    mode: 'any',
    hostsFile,
    lookupMsMax: LOOKUP_MS_MAX,
    systemLookup,
  })
  assert.deepEqual(await names.addressesOf('receiver.test'), ['10.0.0.1'])
  assert.deepEqual(await names.addressesOf('other'), ['10.0.0.1', '::1'])
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
  assert.deepEqual(await names.addressesOf('half.test'), ['192.0.2.5'])
  assert.deepEqual(looked, [])
  for (const name of ['receiver', 'a.localhost', 'receiver.namespace', 'empty.test', 'broken.test'])
    assert.deepEqual(await names.addressesOf(name), ['10.0.0.2'], name)
  assert.deepEqual(looked.splice(0).length, 5)
  assert(!names.server.questions.some((question) => /^(receiver|a\.localhost) /.test(question)))
  assert.equal(await codeOf(names.addressesOf('n.slow.test')), 'ETIMEOUT')
  assert.deepEqual(looked, [], 'a name server that hangs gets no thread')
})

test('any destination: lookups of the operating system that hang never take more than two threads', async () => {
  const gate = Promise.withResolvers<[]>()
  let running = 0
  await using names = await startNames({
    mode: 'any',
    lookupMsMax: LOOKUP_MS_MAX,
    systemLookup: async () => {
      running += 1
      return await gate.promise
    },
  })
  const hanging = ['a', 'b', 'c', 'd', 'e'].map((name) => codeOf(names.addressesOf(name)))
  await eventually(() => assert.equal(running, 2))
  assert.deepEqual(await names.addressesOf('four.test'), ['192.0.2.4'])
  assert.deepEqual([...new Set(await Promise.all(hanging))], ['ETIMEOUT'])
  assert.equal(running, 2)
  gate.resolve([])
})

test('stopping cancels every lookup immediately and leaves nothing behind', async () => {
  const names = await startNames()
  const hanging = slowNames(50).map((name) => codeOf(names.addressesOf(name)))
  await eventually(() => assert(names.server.questions.length >= 50))
  await names[Symbol.asyncDispose]()
  const codes = await within(STOP_MS_MAX, Promise.all(hanging))
  assert.deepEqual([...new Set(codes)], ['ECANCELLED'])
  assert.equal(names.resolver.lookupCount, 0)
  assert.equal(await codeOf(names.resolver.resolve('four.test')), 'ECANCELLED')
  assert(!process.getActiveResourcesInfo().includes('Timeout'))
})

test('reports a silent name server as a timeout, and an unknown name as a DNS failure', async () => {
  await using names = await startNames({ lookupMsMax: LOOKUP_MS_MAX })
  const connect = createConnector({
    rules: { mode: 'public', ports: [] },
    resolve: (name) => names.resolver.resolve(name),
  })
  const classOf = async (hostname: string) => {
    const { promise, resolve } = Promise.withResolvers<Error | null>()
    connect({ protocol: 'https:', hostname, port: '' }, (error, _socket) => resolve(error))
    const error = await promise
    assert(error instanceof ConnectError)
    return [error.errorClass, error.message]
  }
  const late = 'n.slow.test did not respond in time'
  assert.deepEqual(await classOf('n.slow.test'), ['timeout', late])
  const unknown = 'unknown.test could not be resolved: ENOTFOUND'
  assert.deepEqual(await classOf('unknown.test'), ['dns', unknown])
  assert.deepEqual(await classOf('empty.test'), ['dns', 'empty.test has no address'])
})

test('canceling ends sends that wait for a name, and lets those in flight finish', async () => {
  const gate = Promise.withResolvers<void>()
  await using receiver = await startReceiver(async () => {
    await gate.promise
    return {}
  })
  await using names = await startNames({ mode: 'any' })
  const rules = { mode: 'any', ports: [] } as const
  const connect = createConnector({ rules, resolve: (name) => names.resolver.resolve(name) })
  await using sender = new Sender({ connect, readRetryAfter })
  const { port } = new URL(receiver.url)
  const sendTo = (name: string) =>
    sender.send({ url: `http://${name}:${port}/`, headers: {}, body: '{}' })
  const written = sendTo('local.test')
  await receiver.waitFor(1)
  const waiting = slowNames(20).map(sendTo)
  sender.cancelUnsent()
  const canceled = await within(STOP_MS_MAX, Promise.all(waiting))
  for (const { isCanceled } of canceled) assert.equal(isCanceled, true)
  gate.resolve()
  const { outcome, isCanceled } = await written
  assert.deepEqual([outcome.kind, isCanceled], ['accepted', undefined])
  assert.equal(receiver.requestCount, 1)
})
