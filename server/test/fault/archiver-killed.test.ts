import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { assertEveryFileKnown } from '../harness/archive/archive.ts'
import { sendEvents } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { assertChainsHold, countStored } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { connection, url } = annals.database

const WORKSPACES = 8
const EVENTS = 400

/** Runs `annals archive` for everything received so far, alongside the running service. */
const startArchive = () =>
  new AnnalsProcess(['archive', '--before', new Date(Date.now() + 1_000).toISOString()], {
    ANNALS_DATABASE_URL: url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
  })

const countSegments = async (): Promise<number> =>
  Number((await query(connection, 'select count(*) as n from segment'))[0]?.['n'])

test('a repeatedly killed archiver loses, duplicates and leaves nothing behind, and completes', async () => {
  const others = Array.from({ length: WORKSPACES - 1 }, (_, index) => `Other ${index}`)
  const tenant = await annals.createCompany({ workspaces: ['First', ...others] })
  for (const { workspaceKey } of tenant.workspaces) await sendEvents(annals, workspaceKey, EVENTS)
  // Each run is killed after one more file than the run before, wherever it is then.
  for (let killed = 1; killed < WORKSPACES; killed += 2) {
    await using archive = startArchive()
    await eventually(async () => assert((await countSegments()) >= killed))
    archive.signal('SIGKILL')
    await archive.exited
    assert.equal(await assertChainsHold(annals), WORKSPACES * EVENTS)
  }
  await using last = startArchive()
  const { code, stdout, stderr } = await last.exited
  assert.equal(code, 0, stdout + stderr)
  assert.equal(await countStored(annals), 0)
  assert.equal(await assertChainsHold(annals), WORKSPACES * EVENTS)
  await assertEveryFileKnown(annals)
})
