import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { RawConnection, sendRaw } from '../harness/http/raw-http.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'
import { whenAvailable } from './hostile-client.ts'

const CONNECTIONS = 50
const ROUNDS = 3
const REFUSALS_PER_SECOND = 100
const KEY_REFUSALS_PER_SECOND = 300
const ANONYMOUS_PER_SECOND = 300
const MEMBER_PER_SECOND = 100
const COMPANY_PER_SECOND = 300
const IMMEDIATE_MS_MAX = 400
/** A share of the longest wait in a flood, because a busy machine slows down both alike. */
const IMMEDIATE_SHARE_MAX = 0.6
/** Of the time without a flood, for the same reason. */
const IMMEDIATE_TIMES_MAX = 10

const annals = await startTestApp({ env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' } })
after(() => annals[Symbol.asyncDispose]())

const busyCompany = await annals.createCompany({ plan: 'FREE' })
const quietCompany = await annals.createCompany({ plan: 'FREE' })
const { workspaceKey: busyKey } = busyCompany
const { workspaceKey: quietKey } = quietCompany
const signIn = () => signInAs(annals, busyCompany, 'VIEWER')
const colleague = await signIn()
const stranger = await signInAs(annals, quietCompany, 'VIEWER')

const EVENT = JSON.stringify({ category: 'auth', action: 'LOGIN' })

type Sent = { path: string; from: string; key?: string; cookie?: string; method?: string }

const FLOODS: readonly [what: string, request: Sent, refused: readonly number[]][] = [
  ['unknown paths', { path: '/nothing', from: '198.51.100.1' }, [404]],
  ['wrong methods', { path: '/v1/events', from: '198.51.100.2', method: 'PUT' }, [405]],
  ['bad keys', { path: '/v1/events', from: '198.51.100.3', key: 'nonsense' }, [401, 429]],
  ['failed logins', { path: '/dashboard/session', from: '198.51.100.5' }, [400, 429]],
  [
    'invalid requests of a key',
    { path: '/v1/events?zz=1', from: '198.51.100.8', key: busyKey, method: 'GET' },
    [400, 429],
  ],
  ['a key over its limit', { path: '/v1/events', from: '198.51.100.4', key: busyKey }, [429]],
]

/** Each test has its own, because floods soon after each other lower the rate of every caller. */
let networks = 0
const withoutFlood = await callOthers()

for (const [what, request, refused] of FLOODS) {
  test(`delays the rejections of a flood of ${what}, but not those of other callers`, async () => {
    const perSecond = request.key === busyKey ? KEY_REFUSALS_PER_SECOND : REFUSALS_PER_SECOND
    await using flood = startFlood(perSecond, request)
    await flood.isUnderWay
    const innocent = await callOthers()
    const { statuses, seconds, longestMs } = await flood.end()
    const refusals = statuses.filter((status) => refused.includes(status))
    const accepted = statuses.filter((status) => status === 201)
    assert.equal(refusals.length + accepted.length, statuses.length, statuses.join(' '))
    // A second's worth of responses is sent immediately, and each connection has one more in progress.
    const refusalsMax = perSecond * (1 + seconds) + CONNECTIONS
    assert(refusals.length <= refusalsMax, `${refusals.length} refusals in ${seconds} s`)
    assert(refusals.length > 0)
    assertImmediate(innocent, longestMs)
  })
}

test('delays a flood from many networks of one IPv6 site as if it came from one address', async () => {
  const requests = Array.from({ length: CONNECTIONS }, (_, nth) => ({
    path: '/nothing',
    from: `2001:db8:1:${nth}::1`,
  }))
  await using flood = startFlood(REFUSALS_PER_SECOND, ...requests)
  await flood.isUnderWay
  const innocent = await callOthers()
  const { statuses, seconds, longestMs } = await flood.end()
  const refusalsMax = REFUSALS_PER_SECOND * (1 + seconds) + CONNECTIONS
  assert(statuses.length <= refusalsMax, `${statuses.length} refusals in ${seconds} s`)
  assertImmediate(innocent, longestMs)
})

for (const path of ['/', '/health', '/ready']) {
  test(`delays the responses to a flood of GET ${path} without a key, but not those to other callers`, async () => {
    await using flood = startFlood(ANONYMOUS_PER_SECOND, {
      path,
      from: '198.51.100.6',
      method: 'GET',
    })
    await flood.isUnderWay
    const innocent = await callOthers()
    const { statuses, seconds, longestMs } = await flood.end()
    assert.deepEqual(new Set(statuses), new Set([200]))
    const responsesMax = ANONYMOUS_PER_SECOND * (1 + seconds) + CONNECTIONS
    assert(statuses.length <= responsesMax, `${statuses.length} responses in ${seconds} s`)
    assertImmediate(innocent, longestMs)
  })
}

const SESSION_FLOODS: readonly [what: string, request: Sent, status: number][] = [
  ['invalid bodies', { path: '/dashboard/explorer/views', from: '198.51.100.7' }, 400],
  ['forbidden calls', { path: '/dashboard/members', from: '198.51.100.7', method: 'GET' }, 403],
  ['reads', { path: '/dashboard/session', from: '198.51.100.7', method: 'GET' }, 200],
]

for (const [what, request, status] of SESSION_FLOODS) {
  test(`delays a member's flood of ${what}, but no other member or caller`, async () => {
    const { cookie } = await signIn()
    await using flood = startFlood(MEMBER_PER_SECOND, { ...request, cookie })
    await flood.isUnderWay
    const innocent = await callOthers()
    const { statuses, seconds, longestMs } = await flood.end()
    assert.deepEqual(new Set(statuses), new Set([status]))
    const responsesMax = MEMBER_PER_SECOND * (1 + seconds) + CONNECTIONS
    assert(statuses.length <= responsesMax, `${statuses.length} responses in ${seconds} s`)
    assertImmediate(innocent, longestMs)
  })
}

test('delays a flood by many members of a company, but no caller of another company', async () => {
  const members = await Promise.all(Array.from({ length: 10 }, signIn))
  const path = '/dashboard/session'
  await using flood = startFlood(
    COMPANY_PER_SECOND,
    ...members.map(({ cookie }) => ({ path, from: '198.51.100.7', method: 'GET', cookie })),
  )
  await flood.isUnderWay
  const innocent = await callOthers({ withColleague: false })
  const { statuses, seconds, longestMs } = await flood.end()
  assert.deepEqual(new Set(statuses), new Set([200]))
  const responsesMax = COMPANY_PER_SECOND * (1 + seconds) + CONNECTIONS
  assert(statuses.length <= responsesMax, `${statuses.length} responses in ${seconds} s`)
  assertImmediate(innocent, longestMs)
})

test('a delayed rejection is the same response as an immediate one', async () => {
  const headers = { 'x-forwarded-for': '198.51.100.10' }
  const ask = () => annals.call('PUT', '/v1/events', { headers, text: EVENT })
  const responses = await Promise.all(Array.from({ length: REFUSALS_PER_SECOND + 20 }, ask))
  const [first, ...others] = new Set(responses.map(describe))
  assert.deepEqual(others, [], first)
})

test('a delayed health check is the same response as an immediate one', async () => {
  const headers = { 'x-forwarded-for': '198.51.100.12' }
  const ask = () => annals.call('GET', '/health', { headers })
  const responses = await Promise.all(Array.from({ length: ANONYMOUS_PER_SECOND + 20 }, ask))
  const [first, ...others] = new Set(responses.map(describe))
  assert.deepEqual(others, [], first)
})

test('a delayed rejection reads and drops its body, and tiny chunks end the delay', async () => {
  const request = { path: '/nothing', from: '198.51.100.11' }
  await using stack = new AsyncDisposableStack()
  const connect = () => stack.use(new RawConnection(annals.url))
  const [whole, chunked, flooding] = [connect(), connect(), Array.from({ length: 14 }, connect)]
  const all = [whole, chunked, ...flooding]
  await Promise.all(all.map((each) => each.send(bytesOf(request)).response()))
  for (const each of flooding) each.send(withLargeBody(request))
  const first = Promise.race([
    // Delayed for ten seconds.
    whole
      .send(bytesOf(request))
      .response()
      .catch(() => null),
    chunked.response().then(({ status }) => `chunked ${status}`),
  ])
  const [head] = bytesOf(request).split('content-length')
  chunked.send(`${head}transfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(1_500)}`)
  assert.equal(await first, 'chunked 404')
})

/** A head whose body could be so large that the refusal counts as 77. The body isn't sent. */
function withLargeBody(request: Sent): string {
  return bytesOf(request).replace(/content-length: .*$/s, 'content-length: 5000000\r\n\r\n')
}

test('shutdown sends delayed rejections immediately', async () => {
  await using stopped = await startTestApp()
  await using other = new RawConnection(stopped.url)
  const callers = Array.from({ length: 30 }, () => new RawConnection(stopped.url))
  const request = { path: '/nothing', from: '' }
  await Promise.all(callers.map((caller) => caller.send(bytesOf(request)).response()))
  const flooding = callers.splice(0, 14)
  for (const each of flooding) each.send(withLargeBody(request))
  // For longer than a shutdown takes.
  const delayed = callers.map((caller) => caller.send(bytesOf(request)).response())
  // All requests were sent before this one, so the service has read them.
  const health = bytesOf({ path: '/health', from: '', method: 'GET' })
  assert.equal((await other.send(health).response()).status, 200)
  // A shutdown would wait for the rest of their bodies.
  for (const each of flooding) await each[Symbol.asyncDispose]()
  await stopped.app[Symbol.asyncDispose]()
  for (const { status } of await Promise.all(delayed)) assert.equal(status, 404)
})

/**
 * Each connection sends one of the requests, and sends it again after the response. The flood is under way
 * when it has got as many responses as a caller gets without a delay.
 */
function startFlood(immediate: number, ...requests: Sent[]) {
  const texts = requests.map(bytesOf)
  const statuses: number[] = []
  const { promise: isUnderWay, resolve: onUnderWay } = Promise.withResolvers<void>()
  const startedMs = performance.now()
  let longestMs = 0
  const connections = Array.from({ length: CONNECTIONS }, () => new RawConnection(annals.url))
  const sentMs = connections.map(() => startedMs)
  const waitedMs = (nth: number) => performance.now() - (sentMs[nth] ?? 0)
  const sending = connections.map(async (connection, nth) => {
    for (;;) {
      sentMs[nth] = performance.now()
      const { status } = await connection.send(texts[nth % texts.length] ?? '').response()
      longestMs = Math.max(longestMs, waitedMs(nth))
      statuses.push(status)
      if (statuses.length === immediate) onUnderWay()
    }
  })
  // Without waiting for the responses that are still delayed.
  const dispose = async () => {
    await Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()))
    await Promise.allSettled(sending)
  }
  const end = async () => {
    longestMs = Math.max(longestMs, ...connections.map((_, nth) => waitedMs(nth)))
    const seconds = (performance.now() - startedMs) / 1_000
    const outcome = { statuses: [...statuses], seconds, longestMs }
    await dispose()
    return outcome
  }
  return { isUnderWay, end, [Symbol.asyncDispose]: dispose }
}

function assertImmediate(innocent: Map<string, number[]>, longestMs: number): void {
  for (const [caller, timesMs] of innocent) {
    const ms = medianOf(timesMs)
    const waits = `waited ${Math.round(ms)} ms, and the flood up to ${Math.round(longestMs)} ms`
    const idleMs = medianOf(withoutFlood.get(caller) ?? [])
    const msMax = Math.max(
      IMMEDIATE_MS_MAX,
      longestMs * IMMEDIATE_SHARE_MAX,
      idleMs * IMMEDIATE_TIMES_MAX,
    )
    assert(ms < msMax, `${caller}: ${waits}`)
  }
}

/** Not the mean, because the first call also waits for the flood's connections to open. */
function medianOf(timesMs: readonly number[]): number {
  return timesMs.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? 0
}

/**
 * Refused requests and a page of another network. An event of another key, and reads of members of this
 * company and another one, from the networks of the floods.
 */
async function callOthers({ withColleague = true } = {}): Promise<Map<string, number[]>> {
  networks += 1
  const from = `203.0.113.${100 + networks}`
  const session = { path: '/dashboard/session', from: '198.51.100.7', method: 'GET' }
  const calls: [caller: string, request: Sent, status: number][] = [
    ['unknown path', { path: '/nothing', from }, 404],
    ['bad key', { path: '/v1/events', from, key: 'nonsense' }, 401],
    ['page', { path: '/', from, method: 'GET' }, 200],
    ['other key', { path: '/v1/events', from: '198.51.100.4', key: quietKey }, 201],
    ['other company', { ...session, cookie: stranger.cookie }, 200],
  ]
  if (withColleague) calls.push(['colleague', { ...session, cookie: colleague.cookie }, 200])
  const times = new Map<string, number[]>(calls.map(([caller]) => [caller, []]))
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [caller, request, expected] of calls) {
      let startedMs = 0
      const { status, body } = await whenAvailable(() => {
        startedMs = performance.now()
        return sendRaw(annals.url, bytesOf(request))
      })
      assert.equal(status, expected, `${caller}: ${body}`)
      times.get(caller)?.push(performance.now() - startedMs)
    }
  }
  return times
}

function bytesOf({ path, from, key, cookie, method = 'POST' }: Sent): string {
  const body = method === 'GET' ? '' : EVENT
  return [
    `${method} ${path} HTTP/1.1`,
    'host: localhost',
    `x-forwarded-for: ${from}`,
    ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
    ...(cookie === undefined ? [] : [`cookie: ${cookie}`]),
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** Without what differs by time. A response to a body that is still arriving has no connection headers. */
const VARYING_HEADERS = ['x-trace-id', 'date', 'connection', 'keep-alive']

function describe({ status, headers, json }: TestResponse): string {
  const { traceId: _traceId, ...body } = json
  const same = [...headers].filter(([name]) => !VARYING_HEADERS.includes(name))
  return JSON.stringify([status, same, body])
}
