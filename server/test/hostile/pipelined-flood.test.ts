import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fastify } from 'fastify'
import { ClientAddresses } from '../../src/edge/auth/client-address.ts'
import { REQUESTS_IN_FLIGHT_MAX } from '../../src/edge/http/connection-gate.ts'
import { ResponseDelays } from '../../src/edge/http/throttle/delay-responses.ts'
import { createErrorHandler } from '../../src/edge/error-handler.ts'
import { createHttpServer } from '../../src/edge/http/http-server.ts'
import { OpenConnections } from '../../src/edge/http/open-connections.ts'
import { PIPELINED_MAX } from '../../src/edge/http/throttle/response-throttle.ts'
import { ApiError } from '../../src/errors.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { RawConnection } from '../harness/http/raw-http.ts'

const OTHER_ADDRESS = { localAddress: '127.0.0.2' }
/** What each caller gets without a delay. */
const IMMEDIATE = { '/member': 100, '/key': 100, '/health': 300 }

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

for (const flooded of ['/unknown', '/page', '/health']) {
  test(`responds to other delayed callers while an anonymous caller pipelines requests to ${flooded}`, async () => {
    await using server = await listen()
    for (const [path, count] of Object.entries(IMMEDIATE)) await server.callOften(path, count)
    await using open = new AsyncDisposableStack()
    await flood(flooded, server.url, open)
    const seen = server.seen()
    const others = Object.keys(IMMEDIATE).map((path) =>
      open.use(new RawConnection(server.url)).send(get(path)),
    )
    const responses = others.map(async (other) => (await other.response()).status)
    await eventually(() => assert.equal(server.seen() - seen, others.length))
    server.endDelays()
    assert.deepEqual(await Promise.all(responses), [200, 429, 200])
  })
}

/** Pipelines more requests than can wait. */
async function flood(path: string, url: string, open: AsyncDisposableStack): Promise<void> {
  await using other = new RawConnection(url)
  for (let nth = 0; nth < (2 * PIPELINED_MAX) / REQUESTS_IN_FLIGHT_MAX; nth += 1) {
    const flooder = open.use(new RawConnection(url, OTHER_ADDRESS))
    flooder.send(get(path).repeat(REQUESTS_IN_FLIGHT_MAX))
    await other.send(get('/immediate')).response()
  }
}

/** An app with the service's delays, whose rates are used up forever because their clock stands still. */
async function listen() {
  const { clock } = manualClock(0)
  const addresses = new ClientAddresses([])
  const delays = new ResponseDelays({ addresses, hasRateLimits: true, clock })
  const member = { userId: newId<'user'>(), companyId: newId<'company'>() }
  const logger = createLogger('silent')
  const connections = new OpenConnections({ port: 'api', connectionsMax: 1_000, logger })
  const app = fastify({ serverFactory: (serve) => createHttpServer(serve, connections) })
  let seen = 0
  app.addHook(
    'onRequest',
    async ({ ip }) => void (seen += ip === OTHER_ADDRESS.localAddress ? 0 : 1),
  )
  app.setErrorHandler(createErrorHandler(delays.delayRefusal))
  delays.delayAnonymous(app)
  app.setNotFoundHandler(() => {
    throw new ApiError('not_found')
  })
  app.get('/page', () => 'ok')
  app.get('/health', () => 'ok')
  app.get('/immediate', (request) => {
    Object.assign(request, { viewer: member })
    return 'ok'
  })
  app.get('/member', async (request, reply) => {
    Object.assign(request, { viewer: member })
    await delays.delayMember(member, reply.raw)
    return 'ok'
  })
  app.get('/key', (request) => {
    Object.assign(request, { key: { companyId: member.companyId } })
    throw new ApiError('rate_limited')
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return {
    url,
    /** Requests of callers other than the flooder. */
    seen: () => seen,
    callOften: async (path: string, count: number) => {
      await using connection = new RawConnection(url)
      for (let nth = 0; nth < count; nth += 1) await connection.send(get(path)).response()
    },
    endDelays: () => delays[Symbol.dispose](),
    [Symbol.asyncDispose]: () => app.close(),
  }
}
