import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { METHODS } from 'node:http'
import { after, test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { ABORTS, RawConnection } from '../harness/http/raw-http.ts'
import { call, createCompanyIn } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const REQUESTS = 2_000
const AT_ONCE = 50

await using stack = new AsyncDisposableStack()
const database = stack.use(await cloneDatabase())
const env = {
  ANNALS_DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_PORT: '0',
  ANNALS_METRICS_PORT: '0',
  ANNALS_RATE_LIMITS: 'off',
}
const { workspaceKey: key } = await createCompanyIn(database)
const service = stack.use(new AnnalsProcess(['serve'], env))
const [, url = '', metricsUrl = ''] = await service.printed(
  /"event":"service.started".*"url":"([^"]+)","metricsUrl":"([^"]+)"/,
)
const kept = stack.move()
after(() => kept.disposeAsync())

const EVENT = JSON.stringify({ category: 'auth', action: 'user.login' })
const HEALTH = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n'
const NOWHERE = 'GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n'
const JSON_BODY = `content-type: application/json\r\ncontent-length: ${EVENT.length}\r\n\r\n`
const targetOf = (method: string) => (method === 'CONNECT' ? 'example.com:443' : '/v1/events')
const head = (method: string, version = '1.1') =>
  `${method} ${targetOf(method)} HTTP/${version}\r\nhost: x\r\nauthorization: Bearer ${key}\r\n`

/** Each can be cut off anywhere. The methods are all those that Node's parser knows. */
const SHAPES: readonly ((method: string) => string)[] = [
  (method) => `${head(method)}\r\n`,
  (method) => `${head(method)}${JSON_BODY}${EVENT}`,
  (method) => `${head(method)}${JSON_BODY}${EVENT.slice(0, 9)}`,
  (method) => `${head(method)}transfer-encoding: chunked\r\n\r\n5\r\n{"ca`,
  (method) => `${head(method)}transfer-encoding: chunked\r\n\r\nZZ\r\n`,
  (method) => `${head(method)}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
  (method) => `${head(method)}expect: 100-continue\r\n${JSON_BODY}`,
  (method) => `${head(method)}expect: gold\r\n${JSON_BODY}${EVENT}`,
  (method) => `${head(method, '1.0')}\r\n`,
  (method) => `${head(method, '1.0')}${JSON_BODY}${EVENT}`,
  (method) => `${head(method, '2.0')}\r\n`,
  (method) => head(method).slice(0, 30),
  (method) => head(method),
  (method) => `${head(method)}host: y\r\n\r\n`,
  (method) => `${method}\r\n\r\n`,
  (method) => `${HEALTH}${head(method)}\r\n`,
  (method) => `${head('POST')}${JSON_BODY}${EVENT}${head(method)}\r\n${HEALTH}`,
  (method) => `${NOWHERE.repeat(120)}${head(method)}\r\n`,
]

/** Every method in every shape. */
const COMBINATIONS = SHAPES.length * METHODS.length

test('survives 2,000 aborted requests of every method and shape', async () => {
  await repeatFault(async () => {
    await abortAll(url, REQUESTS)
    assert.equal((await call(`${url}/health`, 'GET')).json.ok, true)
    const body = { category: 'auth', action: 'user.login' }
    assert.equal((await call(`${url}/v1/events`, 'POST', { key, body })).status, 201)
  })
})

test('the metrics port survives 2,000 aborted requests of every method and shape, without an uncaught exception', async () => {
  await repeatFault(async () => {
    await abortAll(metricsUrl, REQUESTS)
    const { text } = await call(`${metricsUrl}/metrics`, 'GET')
    const counts = text.split('\n').filter((line) => line.startsWith('annals_exception_uncaught'))
    assert(counts.length > 0)
    for (const line of counts) assert.match(line, / 0$/)
  })
})

/** Cycles through all methods, shapes and ways to disconnect. */
async function abortAll(target: string, count: number): Promise<void> {
  let nth = 0
  const client = async () => {
    while (nth < count) {
      nth += 1
      const shape = SHAPES[nth % SHAPES.length]
      const method = METHODS[Math.floor(nth / SHAPES.length) % METHODS.length]
      const how = ABORTS[(Math.floor(nth / 7) + Math.floor(nth / COMBINATIONS)) % ABORTS.length]
      assert(shape && method && how)
      await using connection = new RawConnection(target)
      await connection.send(shape(method)).abort(how)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
}
