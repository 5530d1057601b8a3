import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { OperatorError } from '../../src/errors.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { SECRET_KEY, startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const OTHER_KEY = randomBytes(32).toString('base64')
const REFUSAL = /^This node has a different secret key .* run "annals secret-key accept"/
const other = { ...ANY_DESTINATION, ANNALS_SECRET_KEY: OTHER_KEY }

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const receiver = stack.use(await startReceiver())
const { clock, advance } = manualClock()

/** A node without background workers. Its database outlives the nodes that a test starts on it. */
const startOwn = () => startTestApp({ env: ANY_DESTINATION, role: 'api', clock })

const accept = ({ database }: TestApp, env: Record<string, string>) =>
  runCommandInHost(['secret-key', 'accept'], { ANNALS_DATABASE_URL: database.url, ...env })

async function storeEvent(annals: TestApp, key: string): Promise<void> {
  const body = { category: 'c', action: 'a' }
  assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, 201)
}

test('a node with a different secret key refuses to start and says what to do', async () => {
  await using annals = await startOwn()
  await using node = new AnnalsProcess(['serve', '--role', 'worker'], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_PORT: '0',
    ...other,
  })
  // A node that starts fails the test instead of blocking it.
  AbortSignal.timeout(240_000).addEventListener('abort', () => node.signal('SIGTERM'))
  const { code, stdout, stderr } = await node.exited
  assert.equal(code, 1)
  assert.match(stderr.replace(/^annals: /, ''), REFUSAL)
  assert.doesNotMatch(stdout, /service\.started/)
  // What the nodes share reveals nothing about the key.
  const [row] = await query(annals.database.connection, 'select * from secret_key_identity')
  assert(row && !JSON.stringify(row).includes(Buffer.from(SECRET_KEY, 'base64').toString('hex')))
  await using same = await startTestApp({ databaseUrl: annals.database.url, role: 'api' })
  assert.equal((await same.call('GET', '/ready')).status, 200)
})

test('of two nodes with different keys that start at once on an empty database, one refuses to start', async () => {
  await using database = await cloneDatabase()
  await using started = new AsyncDisposableStack()
  const outcomes = await Promise.allSettled(
    [{}, other].map(async (env) =>
      started.use(await startTestApp({ databaseUrl: database.url, env })),
    ),
  )
  const refusals = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  assert.equal(refusals.length, 1)
  assert(refusals[0] instanceof OperatorError)
  assert.match(refusals[0].message, REFUSAL)
})

test('a delivery that a node with the wrong key claims is sent later by one with the right key', async () => {
  await using annals = await startOwn()
  const company = await annals.createCompany()
  const webhookId = await makeWebhook(annals, company, { url: receiver.url })
  await accept(annals, other)
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
  const databaseUrl = annals.database.url
  {
    await using _wrong = await startTestApp({ databaseUrl, clock, logger, env: other })
    await storeEvent(annals, company.workspaceKey)
    await eventually(async () => {
      const [delivery] = await readDeliveries(annals, webhookId)
      assert.deepEqual([delivery?.status, delivery?.attempt], ['RETRY_SCHEDULED', 1])
    })
    assert.match(lines.join(''), /"event":"secret\.unreadable"/)
  }
  await accept(annals, { ANNALS_SECRET_KEY: SECRET_KEY })
  await using _right = await startTestApp({ databaseUrl, clock, env: ANY_DESTINATION })
  advance(10_000)
  await eventually(async () => {
    const [delivery] = await readDeliveries(annals, webhookId)
    assert.deepEqual([delivery?.status, delivery?.attempt], ['SUCCEEDED', 2])
  })
})

const REFUSAL_ERROR = { name: 'OperatorError', message: REFUSAL }

test('after "annals secret-key accept", nodes start with the new key, and rotated webhooks are sent', async () => {
  await using annals = await startOwn()
  const company = await annals.createCompany()
  const webhookId = await makeWebhook(annals, company, { url: receiver.url })
  const databaseUrl = annals.database.url
  const { code, stdout, stderr } = await accept(annals, other)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /now requires this secret key/)
  assert.match(stdout, new RegExp(`secrets of 1 webhooks\\..*\n  ${webhookId} `))
  await assert.rejects(startTestApp({ databaseUrl }), REFUSAL_ERROR)
  await using node = await startTestApp({ databaseUrl, clock, env: other })
  const key = company.companyKey
  const rotated = await node.call('POST', `/v1/webhooks/${webhookId}/rotate-secret`, {
    key,
    body: {},
  })
  assert.equal(rotated.status, 200)
  await storeEvent(node, company.workspaceKey)
  await eventually(async () => {
    const [delivery] = await readDeliveries(annals, webhookId)
    assert.equal(delivery?.status, 'SUCCEEDED')
  })
})
