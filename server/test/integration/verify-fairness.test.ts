import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import type { VerifyRun } from '../../src/outlet/verify/verify-run.ts'
import {
  finishVerifyRun,
  findVerifyRun,
  insertVerifyRun,
  claimVerifyRun,
} from '../../src/outlet/verify/verify-run-store.ts'
import { startVerifyWorker } from '../../src/outlet/verify/verify-run-worker.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { ObjectStore } from '../../src/platform/object-store/object-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startTestApp } from '../harness/app/start-app.ts'

// As `api`, so that only the workers of a test take runs.
const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { pool, db } = annals.app.database
const logger = createLogger('silent')
const audit = createServiceAudit(Date.now)
const base = { pool, db, logger, audit, signed: null }

/** A store whose reads of a workspace wait until the test lets one, or all, continue. */
function gatedStore(): { store: ObjectStore; gateOf: (workspaceId: string) => Gate } {
  const gates = new Map<string, Gate>()
  const store = annals.app.archive
  return {
    store: {
      ...store,
      read: async (key, signal) => {
        for (const [workspaceId, gate] of gates) {
          if (key.includes(workspaceId)) await gate.pass(key, signal)
        }
        return await store.read(key, signal)
      },
    },
    gateOf: (workspaceId) => {
      const gate = new Gate()
      gates.set(workspaceId, gate)
      return gate
    },
  }
}

class Gate {
  /** Keys in the order in which their first read arrived. */
  readonly keys: string[] = []
  readonly #open = new Set<string>()
  readonly #waiting = new Set<() => void>()
  #isOpen = false

  async pass(key: string, signal?: AbortSignal): Promise<void> {
    if (!this.keys.includes(key)) this.keys.push(key)
    while (!this.#isOpen && !this.#open.has(key)) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      await promise
    }
  }

  open(key?: string): void {
    if (key === undefined) this.#isOpen = true
    else this.#open.add(key)
    for (const resolve of this.#waiting) resolve()
  }
}

async function send({ workspaceKey }: CreatedCompany): Promise<void> {
  const body = { events: [{ category: 'c', action: 'a' }] }
  const { status, text } = await annals.call('POST', '/v1/events/batch', {
    key: workspaceKey,
    body,
  })
  assert.equal(status, 200, text)
}

/** One run for each workspace of the company, in this order. */
async function startRuns(
  { company, workspaces }: CreatedCompany,
  count = workspaces.length,
): Promise<VerifyRun[]> {
  const runs: VerifyRun[] = []
  const createdBy = newId<'user'>()
  for (const { id } of workspaces.slice(0, count)) {
    const run = { companyId: company.id, workspaceId: id, total: 0, createdBy, now: new Date() }
    runs.push(await insertVerifyRun(db, run))
  }
  return runs
}

const statusOf = async (run?: VerifyRun) => (run ? await findVerifyRun(db, run) : null)?.status

async function assertNotStarted({ id }: VerifyRun): Promise<void> {
  const rows = await query(
    annals.database.connection,
    `select status, beat_at = to_timestamp(0) as is_waiting from verify_run where id = '${id}'`,
  )
  assert.deepEqual(rows, [{ status: 'RUNNING', is_waiting: true }])
}

const HOLDS = { status: 'HOLDS', checked: 0, verdict: '', badSeq: null, badEventId: null } as const

const createCompany = () => annals.createCompany({ workspaces: ['W0', 'W1', 'W2'] })
const [small, busy] = await Promise.all([createCompany(), createCompany()])
const long = [busy, ...(await Promise.all([createCompany(), createCompany(), createCompany()]))]
// The first workspace of each has two archived files, which are two steps.
for (let file = 0; file < 2; file += 1) {
  await Promise.all(long.map(send))
  await archiveAll(annals)
}

test('companies take turns, and each has one run at a time', async () => {
  const first = await startRuns(busy)
  const second = await startRuns(small, 2)
  const takeOne = async () => (await claimVerifyRun(db, new Date()))?.id
  const end = async (run?: VerifyRun) => run && (await finishVerifyRun(db, run, HOLDS, new Date()))
  assert.equal(await takeOne(), first[0]?.id)
  assert.equal(await takeOne(), second[0]?.id)
  assert.equal(await takeOne(), undefined)
  await end(second[0])
  assert.equal(await takeOne(), second[1]?.id)
  await Promise.all([end(first[0]), end(second[1])])
  const third = await startRuns(await annals.createCompany())
  assert.equal(await takeOne(), third[0]?.id, 'a company that has had no run yet comes first')
  const atOnce = await Promise.all(Array.from({ length: 5 }, takeOne))
  assert.deepEqual(
    atOnce.filter((id) => id !== undefined),
    [first[1]?.id],
    'concurrent nodes start only one run of a company',
  )
  await Promise.all([...first, ...third].map(end))
})

test('another company’s run ends before the second run of a busy company starts', async () => {
  const busyRuns = await startRuns(busy)
  const [otherRun] = await startRuns(small, 1)
  const { store, gateOf } = gatedStore()
  const gate = gateOf(busy.workspace.id)
  await using _worker = startVerifyWorker({ ...base, archive: store, clock: Date.now })
  await eventually(async () => assert.equal(await statusOf(otherRun), 'HOLDS'))
  assert.equal(await statusOf(busyRuns[0]), 'RUNNING')
  for (const waiting of busyRuns.slice(1)) await assertNotStarted(waiting)
  gate.open()
  await eventually(async () => {
    for (const run of busyRuns) assert.equal(await statusOf(run), 'HOLDS')
  })
})

test('a short run waits for one step of the long runs of other companies, not for their end', async () => {
  const { store, gateOf } = gatedStore()
  const gates = long.map(({ workspace }) => gateOf(workspace.id))
  const longRuns = (await Promise.all(long.map((company) => startRuns(company, 1)))).flat()
  await using _worker = startVerifyWorker({ ...base, archive: store, clock: Date.now })
  const begun = () => gates.filter(({ keys }) => keys.length > 0)
  await eventually(() => assert.equal(begun().length, 3))
  const [shortRun] = await startRuns(small, 1)
  await eventually(async () => {
    const taken = `select from verify_run where id = '${shortRun?.id}' and beat_at > to_timestamp(0)`
    assert.equal((await query(annals.database.connection, taken)).length, 1)
  })
  // The fourth long run and the short one wait for a turn. Two first files are enough for both.
  for (const gate of begun().slice(0, 2)) gate.open(gate.keys[0])
  await eventually(async () => assert.equal(await statusOf(shortRun), 'HOLDS'))
  for (const run of longRuns) assert.equal(await statusOf(run), 'RUNNING')
  for (const gate of gates) gate.open()
  await eventually(async () => {
    for (const run of longRuns) assert.equal(await statusOf(run), 'HOLDS')
  })
})

test('canceling a run starts the next one of its company', async () => {
  const [first, second] = await startRuns(busy, 2)
  const { store, gateOf } = gatedStore()
  const gate = gateOf(busy.workspace.id)
  await using _worker = startVerifyWorker({ ...base, archive: store, clock: Date.now })
  await eventually(() => assert.equal(gate.keys.length, 1))
  const canceled = { ...HOLDS, status: 'CANCELED' } as const
  assert.ok(first && (await finishVerifyRun(db, first, canceled, new Date())))
  gate.open()
  await eventually(async () => assert.equal(await statusOf(second), 'HOLDS'))
  assert.equal(await statusOf(first), 'CANCELED')
})

test('a worker that stops leaves its runs to another node', async () => {
  const runs = await startRuns(busy, 2)
  const { store, gateOf } = gatedStore()
  const gate = gateOf(busy.workspace.id)
  const worker = startVerifyWorker({ ...base, archive: store, clock: Date.now })
  await eventually(() => assert.equal(gate.keys.length, 1))
  const stopped = worker[Symbol.asyncDispose]()
  gate.open()
  await stopped
  for (const run of runs) assert.equal(await statusOf(run), 'RUNNING')
  const later = () => Date.now() + 60_000
  await using _other = startVerifyWorker({ ...base, archive: store, clock: later })
  await eventually(async () => {
    for (const run of runs) assert.equal(await statusOf(run), 'HOLDS')
  })
})
