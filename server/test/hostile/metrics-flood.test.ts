import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { serveMetrics } from '../../src/edge/serve-metrics.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { call } from '../harness/app/start-app.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { monotonicClock as monotonic } from '../../src/platform/time/clock.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'

const CONNECTIONS_MAX = 16
const RESPONSES_PER_SECOND = 100
const FLOOD_SECONDS = rounds(1, 2)
const SCRAPE = 'GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n'

async function listen(refresh: () => Promise<void>) {
  const deps = {
    metrics: { registry: new Registry() },
    logger: createLogger('silent'),
    monotonic,
    refresh,
  }
  const listener = await serveMetrics(deps, { host: '127.0.0.1', port: 0 })
  return {
    url: `http://127.0.0.1:${listener.port}`,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  }
}

test('requests that arrive during a rendering of the metrics share it', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let renderings = 0
  await using server = await listen(() => {
    renderings += 1
    return promise
  })
  await using stack = new AsyncDisposableStack()
  const waiting = Array.from({ length: CONNECTIONS_MAX - 1 }, () =>
    stack.use(new RawConnection(server.url)).send(SCRAPE),
  )
  await eventually(() => assert(renderings > 0))
  // Answered at once, so it shows that the requests before it have arrived.
  assert.equal((await call(`${server.url}/`, 'GET')).status, 404)
  resolve()
  for (const each of waiting) assert.equal((await each.response()).status, 200)
  assert.equal(renderings, 1)
})

for (const path of ['/metrics', '/nothing']) {
  test(`a flood of GET ${path} on the metrics port costs a bounded number of responses and renderings per second`, async () => {
    let renderings = 0
    await using server = await listen(async () => void (renderings += 1))
    let responses = 0
    const startedMs = performance.now()
    const seconds = () => (performance.now() - startedMs) / 1_000
    const request = SCRAPE.replace('/metrics', path)
    const flood = async () => {
      while (seconds() < FLOOD_SECONDS) {
        await using connection = new RawConnection(server.url).send(request.repeat(8))
        for (let nth = 0; nth < 8; nth += 1) {
          // Requests behind a delayed response are refused, and their connection ends.
          const response = await connection.response().catch(() => null)
          if (response === null) break
          responses += 1
        }
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS_MAX }, flood))
    const elapsed = seconds()
    // One second's worth is immediate, and each connection can wait for one. Behind each response, the next
    // pipelined request can be refused.
    const responsesMax = 2 * (RESPONSES_PER_SECOND * (1 + elapsed) + CONNECTIONS_MAX)
    assert(responses <= responsesMax, `${responses} responses in ${elapsed} s`)
    assert(renderings <= 1 + elapsed, `${renderings} renderings in ${elapsed} s`)
  })
}
