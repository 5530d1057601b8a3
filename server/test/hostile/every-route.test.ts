import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { repeatFault } from '../harness/fault-rounds.ts'
import { call } from '../harness/start-app.ts'
import {
  answerTo,
  assertRefusedOrServed,
  attackAll,
  DEPARTURES,
  sendAndLeave,
} from './hostile-client.ts'
import {
  HOSTILE_BODIES,
  HOSTILE_FIELDS,
  HOSTILE_IDS,
  HOSTILE_PARAMETERS,
} from './hostile-values.ts'
import { everyRoute, pathOf, type Route } from './routes.ts'
import { type Parts, SHAPES, wholeRequest } from './shapes.ts'
import { Target } from './target.ts'

const MB = 1_024 * 1_024
const HEAP_GROWTH_BYTES_MAX = 30 * MB
const RSS_BYTES_MAX = 800 * MB

const target = await Target.start()
after(() => target[Symbol.asyncDispose]())
const { workspaceKey: key, companyKey } = target.company
const routes = everyRoute()
const NO_BODY = Buffer.alloc(0)

/** A stream that never ends has no whole response to wait for. */
const answering = routes.filter(({ path }) => path !== '/dashboard/events/live')

/** The headers of a caller who gets past the door; `anonymous.test.ts` is about the others. */
async function callerOf({ path }: Route): Promise<string> {
  if (path.startsWith('/dashboard')) {
    return `cookie: ${await target.signIn()}\r\nsec-fetch-site: same-origin\r\n`
  }
  const needsCompany = /webhooks|workspaces/.test(path)
  return `authorization: Bearer ${needsCompany ? companyKey : key}\r\n`
}

async function assertAnswered(parts: Parts, about: string): Promise<void> {
  const answer = await answerTo(target.url, wholeRequest(parts))
  assertRefusedOrServed(answer, `${parts.method} ${parts.path.slice(0, 200)} with ${about}`)
}

async function sendBodies(route: Route): Promise<void> {
  const { method } = route
  const headers = await callerOf(route)
  for (const [name, body] of Object.entries(HOSTILE_BODIES)) {
    await assertAnswered({ method, path: pathOf(route), headers, body }, name)
  }
  for (const field of route.fields) {
    for (const [nth, value] of HOSTILE_FIELDS.entries()) {
      const body = Buffer.from(JSON.stringify({ [field]: value }))
      await assertAnswered({ method, path: pathOf(route), headers, body }, `${field} #${nth}`)
    }
  }
}

async function sendParameters(route: Route): Promise<void> {
  const { method } = route
  const headers = await callerOf(route)
  const ask = (path: string) =>
    assertAnswered({ method, path, headers, body: NO_BODY }, 'hostile parameters')
  for (const id of HOSTILE_IDS) await ask(pathOf(route, id))
  for (const value of HOSTILE_PARAMETERS) {
    await ask(`${pathOf(route)}?unknown=${value}`)
    for (const name of route.parameters) await ask(`${pathOf(route)}?${name}=${value}`)
  }
  for (const name of route.parameters) await ask(`${pathOf(route)}?${`${name}=x&`.repeat(500)}`)
}

async function sendAndLeaveEachWay(route: Route): Promise<void> {
  const headers = await callerOf(route)
  const parts = { method: route.method, path: pathOf(route), headers, body: Buffer.from('{}') }
  for (const shape of Object.values(SHAPES)) {
    for (const departure of DEPARTURES) {
      await sendAndLeave(target.url, shape(parts), departure)
    }
  }
}

const stored: string[] = []

async function storeEvent(): Promise<void> {
  const body = { category: 'hostile', action: 'witness' }
  const { status, json, text } = await call(`${target.url}/v1/events`, 'POST', { key, body })
  assert.equal(status, 201, text)
  stored.push(json.id)
}

test('every route answers hostile bodies with a clear error, never a 5xx', async () => {
  assert(routes.length > 100, `${routes.length} routes`)
  await attackAll(answering, sendBodies)
  await storeEvent()
})

test('every route answers hostile ids and parameters with a clear error, never a 5xx', async () => {
  await attackAll(answering, sendParameters)
  await storeEvent()
})

test('the service survives clients that disconnect in the middle of a request on every route', async () => {
  await attackAll(routes, sendAndLeaveEachWay)
  assert(target.isAlive)
  await storeEvent()
})

test('memory returns to its warmed-up level however often the attacks are repeated', async () => {
  const warm = await target.report()
  await repeatFault(async () => {
    await attackAll(routes, sendAndLeaveEachWay)
    await storeEvent()
  })
  const { heapBytes, rssBytes } = await target.report()
  const growth = heapBytes - warm.heapBytes
  assert(growth <= HEAP_GROWTH_BYTES_MAX, `the heap grew by ${(growth / MB).toFixed(1)} MB`)
  assert(rssBytes <= RSS_BYTES_MAX, `${(rssBytes / MB).toFixed(0)} MB resident`)
})

test('the log has no errors, and every event is still in place', async () => {
  assert.equal(target.errors, '')
  const { status, json } = await call(`${target.url}/v1/events?action=witness&limit=200`, 'GET', {
    key,
  })
  assert.equal(status, 200)
  assert.deepEqual(json.data.map(({ id }: { id: string }) => id).toReversed(), stored)
  await target.assertVerifies()
})
