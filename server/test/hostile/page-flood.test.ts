import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { asOwner } from '../harness/dashboard/console.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const READS_PER_COMPANY_MAX = 4

type Reader = () => Promise<TestResponse>

/** Two companies that have read events before, so that reading is all that a request waits for. */
async function createReaders(createReader: () => Promise<Reader>): Promise<[Reader, Reader]> {
  const readers: [Reader, Reader] = [await createReader(), await createReader()]
  for (const read of readers) assert.equal((await read()).status, 200)
  return readers
}

async function readerWithKey(): Promise<Reader> {
  const { workspaceKey: key } = await annals.createCompany()
  await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  return () => annals.call('GET', '/v1/events', { key })
}

async function readerWithSession(): Promise<Reader> {
  const tenant = await annals.createCompany()
  const body = { category: 'c', action: 'a' }
  await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, body })
  const { call } = await signInAs(annals, tenant, 'OWNER')
  return () => call('GET', '/dashboard/events')
}

/** Reads that reached the database, and wait there for the table of events. The write probe can wait too. */
async function countReads(): Promise<unknown> {
  const [row] = await query(
    annals.database.connection,
    `select count(*)::int as count from pg_locks join pg_stat_activity using (pid)
      where not granted and relation = 'event'::regclass
        and application_name <> 'annals write probe'`,
  )
  return row?.['count']
}

async function whileReadsStall(work: () => Promise<void>): Promise<void> {
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`lock table event in access exclusive mode`.execute(trx)
      await work()
    }),
  )
}

for (const [name, createReader] of [
  ['the API', readerWithKey],
  ['the dashboard', readerWithSession],
] as const) {
  test(`a company reads four pages at once in ${name}, while another company's read starts immediately`, async () => {
    const [greedy, other] = await createReaders(createReader)
    let responses: Promise<TestResponse>[] = []
    await whileReadsStall(async () => {
      responses = Array.from({ length: 30 }, greedy)
      await eventually(async () => assert.equal(await countReads(), READS_PER_COMPANY_MAX))
      responses.push(other())
      await eventually(async () => assert.equal(await countReads(), READS_PER_COMPANY_MAX + 1))
    })
    for (const { status, text } of await Promise.all(responses)) assert.equal(status, 200, text)
  })
}

test('a company with too many waiting reads gets 503, while another company is served', async () => {
  const [greedy, other] = await createReaders(readerWithKey)
  const refused: TestResponse[] = []
  let responses: Promise<TestResponse>[] = []
  await whileReadsStall(async () => {
    responses = Array.from({ length: READS_PER_COMPANY_MAX + 200 + 5 }, async () => {
      const response = await greedy()
      if (response.status !== 200) refused.push(response)
      return response
    })
    await eventually(() => assert.equal(refused.length, 5))
    responses.push(other())
    await eventually(async () => assert.equal(await countReads(), READS_PER_COMPANY_MAX + 1))
  })
  for (const { status, json, headers } of refused) {
    assert.deepEqual([status, json.code, headers.get('retry-after')], [503, 'overloaded', '1'])
  }
  const statuses = (await Promise.all(responses)).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, READS_PER_COMPANY_MAX + 200 + 1)
})
