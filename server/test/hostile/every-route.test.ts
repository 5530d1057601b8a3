import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { repeatFault, rounds } from '../harness/timing/fault-rounds.ts'
import { call } from '../harness/app/start-app.ts'
import {
  responseTo,
  assertRefusedOrServed,
  attackAll,
  DEPARTURES,
  sendAndLeave,
  whenAvailable,
} from './hostile-client.ts'
import {
  HOSTILE_BODIES,
  HOSTILE_FIELDS,
  HOSTILE_IDS,
  HOSTILE_PARAMETERS,
} from './hostile-values.ts'
import { everyRoute, pathOf, type Route } from './routes.ts'
import { SHAPES, wholeRequest } from './shapes.ts'
import { Target } from './target.ts'

const MB = 1_024 * 1_024
const HEAP_GROWTH_BYTES_MAX = 30 * MB
const RSS_BYTES_MAX = 800 * MB

const target = await Target.start()
after(() => target[Symbol.asyncDispose]())
const { workspaceKey: key, companyKey } = target.company
const routes = everyRoute()
const NO_BODY = Buffer.alloc(0)

type Request = { about: string; path?: string; body?: Buffer }

/** A stream that never ends has no whole response to wait for. */
const respondingRoutes = routes.filter(({ path }) => path !== '/dashboard/events/live')

/** The headers of an authenticated caller. `anonymous.test.ts` covers the others. */
async function callerOf({ path }: Route): Promise<string> {
  if (path.startsWith('/dashboard')) {
    return `cookie: ${await target.signIn()}\r\nsec-fetch-site: same-origin\r\n`
  }
  const needsCompany = /webhooks|workspaces/.test(path)
  return `authorization: Bearer ${needsCompany ? companyKey : key}\r\n`
}

/** In the short run, every nth of them. All are used, because the offset differs by route. */
const REQUEST_STEP = rounds(8, 1)
/** Memory that grows shows only after many of them. */
const DEPARTURE_STEP = rounds(4, 1)

function sample<T>(route: Route, values: readonly T[], step: number): T[] {
  const offset = routes.indexOf(route)
  return values.filter((_value, index) => (index + offset) % step === 0)
}

async function assertResponses(route: Route, requests: readonly Request[]): Promise<void> {
  const { method } = route
  const headers = await callerOf(route)
  for (const { path = pathOf(route), body = NO_BODY, about } of sample(
    route,
    requests,
    REQUEST_STEP,
  )) {
    const bytes = wholeRequest({ method, path, headers, body })
    const response = await whenAvailable(() => responseTo(target.url, bytes))
    assertRefusedOrServed(response, `${method} ${path.slice(0, 200)} with ${about}`)
  }
}

async function sendBodies(route: Route): Promise<void> {
  const wholes = Object.entries(HOSTILE_BODIES).map(([about, body]) => ({ about, body }))
  const fields = route.fields.flatMap((field) =>
    HOSTILE_FIELDS.map((value, nth) => ({
      about: `${field} #${nth}`,
      body: Buffer.from(JSON.stringify({ [field]: value })),
    })),
  )
  await assertResponses(route, [...wholes, ...fields])
}

async function sendParameters(route: Route): Promise<void> {
  const names = [...route.parameters, 'unknown']
  const queries = names.flatMap((name) => [
    ...HOSTILE_PARAMETERS.map((value) => `${name}=${value}`),
    `${name}=x&`.repeat(500),
  ])
  const paths = [
    ...new Set(HOSTILE_IDS.map((id) => pathOf(route, id))),
    ...queries.map((query) => `${pathOf(route)}?${query}`),
  ]
  const about = 'hostile parameters'
  await assertResponses(
    route,
    paths.map((path) => ({ about, path })),
  )
}

async function sendAndLeaveEachWay(route: Route): Promise<void> {
  const headers = await callerOf(route)
  const parts = { method: route.method, path: pathOf(route), headers, body: Buffer.from('{}') }
  const ways = Object.values(SHAPES).flatMap((shape) =>
    DEPARTURES.map((departure) => ({ bytes: shape(parts), departure })),
  )
  for (const { bytes, departure } of sample(route, ways, DEPARTURE_STEP)) {
    await sendAndLeave(target.url, bytes, departure)
  }
}

const stored: string[] = []

async function storeEvent(): Promise<void> {
  const body = { category: 'hostile', action: 'witness' }
  const { status, json, text } = await call(`${target.url}/v1/events`, 'POST', { key, body })
  assert.equal(status, 201, text)
  stored.push(json.id)
}

test('every route responds to hostile bodies with a clear error, never a 5xx', async () => {
  assert(routes.length > 100, `${routes.length} routes`)
  await attackAll(respondingRoutes, sendBodies)
  await storeEvent()
})

test('every route responds to hostile ids and parameters with a clear error, never a 5xx', async () => {
  await attackAll(respondingRoutes, sendParameters)
  await storeEvent()
})

test('the service survives clients that disconnect during a request, and its memory returns to the level before', async () => {
  const warm = await target.report()
  await repeatFault(async () => {
    await attackAll(routes, sendAndLeaveEachWay)
    assert(target.isAlive)
    await storeEvent()
  })
  const { heapBytes, rssBytes } = await target.report()
  const growth = heapBytes - warm.heapBytes
  assert(growth <= HEAP_GROWTH_BYTES_MAX, `the heap grew by ${(growth / MB).toFixed(1)} MB`)
  assert(rssBytes <= RSS_BYTES_MAX, `${(rssBytes / MB).toFixed(0)} MB resident`)
})

test('the log has no errors, and every event is still stored', async () => {
  assert.equal(target.errors, '')
  const { status, json } = await call(`${target.url}/v1/events?action=witness&limit=200`, 'GET', {
    key,
  })
  assert.equal(status, 200)
  assert.deepEqual(json.data.map(({ id }: { id: string }) => id).toReversed(), stored)
  await target.assertVerifies()
})
