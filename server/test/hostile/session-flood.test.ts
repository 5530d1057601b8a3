import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { countLockWaits } from '../harness/database/company-lock.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

const SESSION_READS_MAX = 2
const STATUS_READS_MAX = 2
const REQUESTS = 200
/** Requests of a company that the node serves at once, and those that wait. */
const QUEUED_MAX = 4 + 200
/** Fewer than a company gets without a delay. */
const REFUSED_MIN = 50

test('requests with a session leave connections for keys and readiness', async () => {
  const member = await signInAs(annals, await annals.createCompany(), 'OWNER')
  assert.equal((await member.call('GET', '/dashboard/session')).status, 200)
  // Not cached on this node, so the service has to read it.
  const { workspaceKey: key } = await annals.createCompany()
  const assertOthersServed = async () => {
    const others = await Promise.all([
      annals.call('GET', '/v1/keys/status', { key }),
      annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } }),
      annals.call('GET', '/ready'),
    ])
    assert.deepEqual(
      others.map(({ status }) => status),
      [200, 201, 200],
    )
  }
  let responses: Promise<TestResponse>[] = []
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      // Session reads take as long as this transaction.
      await sql`lock table user_session in access exclusive mode`.execute(trx)
      responses = Array.from({ length: REQUESTS }, () => member.call('GET', '/dashboard/session'))
      await eventually(async () => assert((await countLockWaits(annals)) >= SESSION_READS_MAX))
      let waits = 0
      // More than one try, because a busy machine can take longer than a read may.
      await eventually(async () => {
        waits = Math.max(waits, await countLockWaits(annals))
        await assertOthersServed()
      })
      // One more may be background work.
      assert(waits <= SESSION_READS_MAX + 1, `${waits} statements wait`)
    }),
  )
  for (const { status, text } of await Promise.all(responses)) {
    assert([200, 503].includes(status), text)
  }
})

test('status requests of one company leave connections for others', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const { workspaceKey: otherKey } = await annals.createCompany()
  let responses: Promise<TestResponse>[] = []
  await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      // Status reads take as long as this transaction.
      await sql`lock table api_key_use in access exclusive mode`.execute(trx)
      const ask = () => annals.call('GET', '/v1/keys/status', { key })
      responses = Array.from({ length: REQUESTS / 2 }, ask)
      await eventually(async () => assert((await countLockWaits(annals)) >= STATUS_READS_MAX))
      const listed = await annals.call('GET', '/v1/events', { key: otherKey })
      assert.equal(listed.status, 200, listed.text)
      const waits = await countLockWaits(annals)
      // One more may be the write of the uses so far.
      assert(waits <= STATUS_READS_MAX + 1, `${waits} statements wait`)
    }),
  )
  for (const { status, text } of await Promise.all(responses)) {
    assert([200, 503].includes(status), text)
  }
})

test('an owner revokes a key that keeps its company busy', async () => {
  const tenant = await annals.createCompany()
  const { workspaceKey: key } = tenant
  const owner = await signInAs(annals, tenant, 'OWNER')
  const { json } = await owner.call('GET', '/dashboard/keys')
  const { id } = json.data.find(({ prefix }: { prefix: string }) => key.startsWith(prefix))
  assert.equal((await annals.call('GET', '/v1/events', { key })).status, 200)
  let revoked: Promise<TestResponse>[] = []
  let responses: Promise<TestResponse>[] = []
  await asOwner(annals, (database) =>
    database.transaction().execute(async (trx) => {
      // Reads take as long as this transaction, so the company's queue fills up.
      await sql`lock table chain_head, event in access exclusive mode`.execute(trx)
      const refused: TestResponse[] = []
      responses = Array.from({ length: QUEUED_MAX + REFUSED_MIN }, async () => {
        const response = await annals.call('GET', '/v1/events', { key })
        if (response.status !== 200) refused.push(response)
        return response
      })
      await eventually(() => assert(refused.length >= REFUSED_MIN))
      revoked = [owner.call('POST', `/dashboard/keys/${id}/revoke`)]
      // The queue is full, and one request makes room for the owner's.
      await eventually(() => assert(refused.length > REFUSED_MIN))
      for (const { status, text } of refused) assert.equal(status, 503, text)
    }),
  )
  const [revocation] = await Promise.all(revoked)
  assert.equal(revocation?.status, 200, revocation?.text)
  await Promise.all(responses)
})
