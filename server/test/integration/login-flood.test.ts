import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { type TestResponse, call, SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const ATTEMPTS = rounds(500, 1_000)
const CONNECTIONS = 200
const EVENTS_MIN = 300
const ROUNDS_MAX = 4

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
// A separate process, so that the work of sending a flood doesn't look like its effect.
const flooded = new AnnalsProcess(['serve', '--role', 'api'], {
  ANNALS_DATABASE_URL: annals.database.url,
  ANNALS_SECRET_KEY: SECRET_KEY,
  ANNALS_ARCHIVE_URL: annals.archiveUrl,
  ANNALS_PORT: '0',
  ANNALS_METRICS_PORT: '0',
  ANNALS_RATE_LIMITS: 'off',
})
after(async () => {
  await flooded[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})

test('hundreds of login attempts do not slow down ingest, and no event is lost', async () => {
  const [, url = ''] = await flooded.printed(/"url":"(http:[^"]+)"/)
  const { workspaceKey: key, user, workspace } = await annals.createCompany()
  let stored = (await sendEvents(url, key, (sent) => sent < EVENTS_MIN)).length
  const slowed: string[] = []
  // Repeated if it was slowed down, because other processes do that too.
  for (let isSlowed = true; isSlowed;) {
    const { quiet, busy } = await sendBeside(url, key, user.email)
    stored += quiet.length + busy.length
    isSlowed =
      percentile(busy, 0.5) >= 2 * percentile(quiet, 0.5) + 5 ||
      percentile(busy, 0.99) >= 3 * percentile(quiet, 0.99) + 100
    if (isSlowed) slowed.push(`${describe(busy)} beside ${describe(quiet)}`)
    assert(slowed.length < ROUNDS_MAX, slowed.join('; '))
  }
  const { seq } = await annals.app.database.db
    .selectFrom('chain_head')
    .select('seq')
    .where('workspace_id', '=', workspace.id)
    .executeTakeFirstOrThrow()
  assert.equal(seq, stored)
})

/** How long events took before and during a flood. */
async function sendBeside(url: string, key: string, email: string) {
  const quiet = await sendEvents(url, key, (sent) => sent < EVENTS_MIN)
  const startedMs = performance.now()
  let isOver = false
  const flood = tryPasswords(url, email).finally(() => (isOver = true))
  const busy = await sendEvents(url, key, () => !isOver)
  const responses = await flood
  const floodMs = performance.now() - startedMs

  assert.equal(responses.length, ATTEMPTS)
  const checked = responses.filter(({ status }) => status === 401)
  const sentAway = responses.filter(({ status }) => status === 503)
  assert.equal(checked.length + sentAway.length, ATTEMPTS)
  // Each of these costs a hash. A few dozen per second are checked, however many are sent.
  assert(checked.length > 0 && sentAway.length > checked.length)
  assert(sentAway.every(({ headers }) => headers.get('retry-after') === '1'))
  // A second's worth of refusals is sent immediately. After that each connection waits up to a
  // second, so that 200 connections do not send thousands of requests per second.
  const refusalsMax = 100 + CONNECTIONS * (1 + floodMs / 1_000)
  assert(sentAway.length <= refusalsMax, `${sentAway.length} in ${floodMs} ms`)
  return { quiet, busy }
}

/** One after another, so that none waits for another. Returns how long each took. */
async function sendEvents(
  url: string,
  key: string,
  goesOn: (sent: number) => boolean,
): Promise<number[]> {
  const timesMs: number[] = []
  while (goesOn(timesMs.length)) {
    const body = { category: 'auth', action: 'LOGIN', metadata: { nth: timesMs.length } }
    const startedMs = performance.now()
    const { status } = await call(`${url}/v1/events`, 'POST', { key, body })
    timesMs.push(performance.now() - startedMs)
    assert.equal(status, 201)
  }
  return timesMs
}

type TimedResponse = TestResponse & { ms: number }

/** Each response triggers the next request. Every other one uses an existing account. */
async function tryPasswords(url: string, known: string): Promise<TimedResponse[]> {
  const responses: TimedResponse[] = []
  let sent = 0
  const connection = async () => {
    while (sent < ATTEMPTS) {
      sent += 1
      const email = sent % 2 === 0 ? known : `nobody-${sent}@example.com`
      const body = { email, password: 'wrong horse' }
      const startedMs = performance.now()
      const response = await call(`${url}/dashboard/session`, 'POST', { body })
      responses.push({ ...response, ms: performance.now() - startedMs })
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, connection))
  return responses
}

function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0
}

function describe(timesMs: readonly number[]): string {
  const [p50, p99] = [percentile(timesMs, 0.5), percentile(timesMs, 0.99)]
  return `${timesMs.length} events: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
}
