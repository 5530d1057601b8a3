import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { fastify } from 'fastify'
import { manualClock } from '../../../../test/harness/timing/clock.ts'
import { ApiError } from '../../../errors.ts'
import { newId } from '../../../platform/id.ts'
import { ClientAddresses } from '../../auth/client-address.ts'
import { ResponseDelays } from './delay-responses.ts'
import { createErrorHandler } from '../../error-handler.ts'

/** Each response has its own connection unless `socket` is given. */
const newResponse = (socket = new Socket()) => new ServerResponse(new IncomingMessage(socket))

/** Runs pending callbacks but no timers, so no delay ends meanwhile. */
const settle = () => new Promise<void>((resolve) => process.nextTick(resolve))

function startDelays({ hasRateLimits = true } = {}) {
  const { clock, advance } = manualClock(0)
  const addresses = new ClientAddresses([])
  const delays = new ResponseDelays({ addresses, hasRateLimits, clock })
  const companyId = newId<'company'>()
  /** Sends `count` requests of a member at once. Returns how many are not delayed. */
  const countImmediate = async (member: Member, count: number): Promise<number> => {
    let immediate = 0
    for (let nth = 0; nth < count; nth += 1) {
      delays.delayMember(member, newResponse()).then(() => (immediate += 1), assert.ifError)
    }
    await settle()
    return immediate
  }
  return {
    advance,
    delays,
    countImmediate,
    joinCompany: (): Member => ({ userId: newId<'user'>(), companyId }),
    [Symbol.dispose]: () => delays[Symbol.dispose](),
  }
}

const CODES = ['rate_limited', 'overloaded', 'invalid_request', 'not_found', 'unavailable'] as const

type Member = Parameters<ResponseDelays['delayMember']>[0]

test('delays requests of a member beyond 100 per second, but not those of colleagues', async () => {
  using started = startDelays()
  const { joinCompany, countImmediate, advance } = started
  const [busy, colleague] = [joinCompany(), joinCompany()]
  assert.equal(await countImmediate(busy, 150), 100)
  assert.equal(await countImmediate(colleague, 100), 100)
  advance(2_000)
  assert.equal(await countImmediate(busy, 100), 100)
})

test('delays requests of a company beyond 300 per second, but not those of other companies', async () => {
  using started = startDelays()
  const { joinCompany, countImmediate } = started
  let immediate = 0
  for (let nth = 0; nth < 10; nth += 1) immediate += await countImmediate(joinCompany(), 40)
  assert.equal(immediate, 300)
  const stranger = { ...joinCompany(), companyId: newId<'company'>() }
  assert.equal(await countImmediate(stranger, 100), 100)
})

test('delays no member if rate limits are off', async () => {
  using started = startDelays({ hasRateLimits: false })
  const { joinCompany, countImmediate } = started
  assert.equal(await countImmediate(joinCompany(), 500), 500)
})

test('loads a page without a delay while many companies flood the node', async () => {
  using started = startDelays()
  const { joinCompany, countImmediate } = started
  const join = () => ({ ...joinCompany(), companyId: newId<'company'>() })
  for (let company = 0; company < 30; company += 1) await countImmediate(join(), 100)
  assert.equal(await countImmediate(join(), 30), 30)
})

test('skips a delayed request whose client disconnected', async () => {
  using started = startDelays()
  const { delays, joinCompany, countImmediate } = started
  const member = joinCompany()
  await countImmediate(member, 100)
  const socket = new Socket()
  const response = newResponse(socket)
  response.assignSocket(socket)
  const delayed = delays.delayMember(member, response)
  socket.destroy()
  await assert.rejects(delayed, ApiError)
  await assert.rejects(delays.delayMember(member, response), ApiError)
})

test('delays rejections of large bodies sooner, because the rest of the body is received', async () => {
  using started = startDelays()
  await using app = fastify()
  app.setErrorHandler(createErrorHandler(started.delays.delayRefusal))
  app.addHook('onRequest', () => {
    throw new ApiError('invalid_api_key')
  })
  const served: string[] = []
  const send = async (remoteAddress: string, bytes: number) => {
    await app.inject({ method: 'POST', url: '/', remoteAddress, payload: 'x'.repeat(bytes) })
    served.push(remoteAddress)
  }
  const flood = Array.from({ length: 40 }, () => send('198.51.100.1', 1024 * 1024))
  await send('198.51.100.2', 1024 * 1024)
  // A megabyte counts as 17 refusals, so the last of the flood waits for six seconds.
  assert(served.length < flood.length, `${served.length} served`)
  started.delays[Symbol.dispose]()
  await Promise.all(flood)
})

test('delays rejections of valid keys beyond 300 per second and company, but no failures of the service', async () => {
  using started = startDelays()
  await using app = fastify()
  app.setErrorHandler(createErrorHandler(started.delays.delayRefusal))
  app.decorateRequest('key')
  app.addHook('onRequest', (request) => {
    const [name, companyId] = request.url.slice(1).split('/')
    const code = CODES.find((each) => each === name) ?? assert.fail()
    Object.assign(request, { key: { companyId } })
    throw new ApiError(code)
  })
  const served: string[] = []
  const send = async (url: string) => {
    await app.inject({ url })
    served.push(url)
  }
  const send100 = (url: string) => Array.from({ length: 100 }, () => send(url))
  const failures = send100('/unavailable/busy')
  const flood = CODES.flatMap((code) => send100(`/${code}/busy`))
  await Promise.all([...failures, ...CODES.map((code) => send(`/${code}/other`))])
  const refusals = served.filter((url) => url.endsWith('/busy') && !url.includes('unavailable'))
  assert.equal(refusals.length, 300)
  started.delays[Symbol.dispose]()
  await Promise.all(flood)
})
