import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { call, SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { user } = await annals.createCompany()

const MB = 1_024 * 1_024
const SIGN_INS = 32
/** Hashing a password takes 19 MB, and two hashes run at once. */
const GROWTH_BYTES_MAX = 120 * MB

test('the memory for password hashing is returned to the system', async () => {
  await using node = new AnnalsProcess(['serve', '--role', 'api'], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_PORT: '0',
    ANNALS_METRICS_PORT: '0',
    ANNALS_RATE_LIMITS: 'off',
  })
  const [, line = ''] = await node.printed(/(\{.*"event":"service\.started".*\})/)
  const { url, metricsUrl } = JSON.parse(line)
  const readMemory = async () => {
    const { text } = await call(`${metricsUrl}/metrics`, 'GET')
    return Number(/^annals_process_resident_memory_bytes (\d+)/m.exec(text)?.[1])
  }
  const before = await readMemory()
  for (let nth = 0; nth < SIGN_INS; nth += 4) {
    const attempts = Array.from({ length: 4 }, () =>
      call(`${url}/dashboard/session`, 'POST', {
        headers: { 'sec-fetch-site': 'same-origin' },
        body: user,
      }),
    )
    for (const { status, text } of await Promise.all(attempts)) assert.equal(status, 200, text)
  }
  const growth = (await readMemory()) - before
  assert(growth < GROWTH_BYTES_MAX, `${Math.round(growth / MB)} MB more`)
})
