import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OutputBudget } from '../../src/edge/http/output-budget.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { ABORTS, RawConnection } from '../harness/http/raw-http.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const COMPANY_BYTES_MAX = 10_000_000
const output = new OutputBudget({ companyBytesMax: COMPANY_BYTES_MAX })
const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' }, output })
after(() => annals[Symbol.asyncDispose]())

const PAGE_BYTES_MIN = 2_000_000
/** The kernel buffers up to 10 MB per connection. What follows waits in the process. */
const PAGES_PER_CONNECTION = 8

type Reader = {
  pages: string
  readPage: () => Promise<TestResponse>
  readLittle: () => Promise<TestResponse>
}

/** A company whose pages of events are as large as they can be, and how it reads with a key. */
async function createCompany() {
  const tenant = await annals.createCompany({ plan: 'FREE' })
  const event = { category: 'c', action: 'a', metadata: { text: 'x'.repeat(240_000) } }
  const body = { events: Array.from({ length: 10 }, () => event) }
  const stored = await annals.call('POST', '/v1/events/batch', { key: tenant.workspaceKey, body })
  assert.equal(stored.status, 200, stored.text)
  return tenant
}

async function readerWithKey(): Promise<Reader> {
  const { workspaceKey: key } = await createCompany()
  return {
    pages: `/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`,
    readPage: () => annals.call('GET', '/v1/events', { key }),
    readLittle: () => annals.call('GET', '/v1/exports', { key }),
  }
}

async function readerWithSession(): Promise<Reader> {
  const { call, cookie } = await signInAs(annals, await createCompany(), 'OWNER')
  return {
    pages: `/dashboard/events HTTP/1.1\r\nhost: x\r\ncookie: ${cookie}\r\nsec-fetch-site: same-origin\r\n\r\n`,
    readPage: () => call('GET', '/dashboard/events'),
    readLittle: () => call('GET', '/dashboard/keys'),
  }
}

for (const [name, createReader] of [
  ['the API', readerWithKey],
  ['the dashboard', readerWithSession],
] as const) {
  test(`unread pages of ${name} take bounded memory per company, and small responses are still sent`, async () => {
    const [greedy, neighbor] = [await createReader(), await createReader()]
    assert((await greedy.readPage()).text.length > PAGE_BYTES_MIN)
    await using stack = new AsyncDisposableStack()
    // Some of the pages are refused themselves, so it is not known how many connections it takes.
    const refused = await eventually(async () => {
      const connection = stack.use(new RawConnection(annals.url)).pause()
      connection.send(`GET ${greedy.pages}`.repeat(PAGES_PER_CONNECTION))
      const response = await greedy.readPage()
      assert.equal(response.status, 429, response.text.slice(0, 300))
      return response
    })
    assert.equal(refused.json.code, 'rate_limited')
    assert.match(refused.json.error, /would exceed 10 MB\. Read them/)
    assert.equal(refused.headers.get('retry-after'), '1')
    assert(output.bytes <= COMPANY_BYTES_MAX)
    const metrics = await annals.app.metrics.registry.metrics()
    assert.match(metrics, /^annals_response_unread_bytes [1-9]\d+$/m)
    for (const response of [await neighbor.readPage(), await greedy.readLittle()]) {
      assert.equal(response.status, 200, response.text.slice(0, 500))
    }
    await stack.disposeAsync()
    await eventually(() => assert.equal(output.bytes, 0))
    assert.equal((await greedy.readPage()).status, 200)
  })
}

test('a page stops counting when its client disconnects, even behind another response', async () => {
  const { pages, readPage } = await readerWithKey()
  await Promise.all(
    ABORTS.flatMap((how) =>
      ['GET', 'HEAD'].map(async (method) => {
        await using connection = new RawConnection(annals.url)
        connection.send(`${method} ${pages}GET ${pages}`)
        await connection.abort(how)
      }),
    ),
  )
  await eventually(() => assert.equal(output.bytes, 0))
  for (let nth = 0; nth < 10; nth += 1) assert.equal((await readPage()).status, 200)
  await eventually(() => assert.equal(output.bytes, 0))
})
