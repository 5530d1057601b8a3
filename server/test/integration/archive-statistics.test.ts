import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { archiveLedger } from '../../src/outlet/archive/archive-ledger.ts'
import { systemClock as clock } from '../../src/platform/time/clock.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { query } from '../harness/database/engine.ts'
import { within } from '../harness/timing/eventually.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logger = createLogger('silent')
const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const keeper = new Database({ connection, role: 'annals_keeper', connectionsMax: 3, logger })
after(() => keeper[Symbol.asyncDispose]())

const EVENTS = 5_000
const ARCHIVE_MS_MAX = 15_000

test('archives many distinct actions in bounded time while statistics are stale', async () => {
  const [many, other] = [await annals.createCompany(), await annals.createCompany()]
  for (const table of ['event_rollup', 'event_value']) {
    await query(connection, `alter table ${table} set (autovacuum_enabled = off)`)
  }
  const sendAndCount = async (
    { workspace, workspaceKey }: CreatedCompany,
    actionOf: (nth: number) => string,
  ) => {
    const events = Array.from({ length: EVENTS }, (_, nth) => ({
      category: 'c',
      action: actionOf(nth),
    }))
    for (let at = 0; at < EVENTS; at += 500) {
      await storeEvents(annals, workspaceKey, events.slice(at, at + 500))
    }
    await advanceRollup(annals.app.database.db, workspace.id, { runMax: EVENTS })
  }
  const archiveAll = () =>
    archiveLedger(
      { connection, database: keeper, archive: annals.app.archive, clock, logger },
      { beforeMs: Date.now() + 1_000, thresholds: { eventsMin: 1, overdueMs: 0 } },
      new AbortController().signal,
    )
  await sendAndCount(many, (nth) => `first ${nth}`)
  assert.equal((await archiveAll()).events, EVENTS)
  // From here on, PostgreSQL's statistics say that the tables contain a few rows of another
  // workspace.
  await sendAndCount(other, () => 'same')
  await query(connection, 'vacuum analyze event_rollup')
  await query(connection, 'vacuum analyze event_value')
  await sendAndCount(many, (nth) => `second ${nth}`)
  assert.deepEqual(await within(ARCHIVE_MS_MAX, archiveAll()), {
    events: 2 * EVENTS,
    workspaces: 2,
    failed: 0,
    refusals: [],
    eventsHeld: 0,
    workspacesBusy: 0,
  })
  for (const table of ['event_rollup', 'event_value']) {
    assert.deepEqual(await query(connection, `select count(*)::int as n from ${table}`), [{ n: 0 }])
  }
})
