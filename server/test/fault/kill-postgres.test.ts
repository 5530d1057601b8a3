import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'
import { assertPromptResponses } from '../harness/event/load.ts'

const annals = await FaultService.start()
after(() => annals[Symbol.asyncDispose]())

test('the service survives a kill of its PostgreSQL, returns 503 meanwhile, and loses nothing', async () => {
  await using load = annals.load()
  await repeatFault(async () => {
    await load.waitForProgress()
    const before = load.failed
    annals.killPostmaster()
    await load.waitForFailures(before)
  })
  await load.waitForProgress()
  await load.stop()
  assertPromptResponses(load)
  await annals.assertHolds(load)
})

test('the service survives a kill of its writer’s backend, which restarts PostgreSQL', async () => {
  await using load = annals.load()
  await repeatFault(async () => {
    await load.waitForProgress()
    const pid = await findWriter()
    process.kill(pid, 'SIGKILL')
    // Requests fail only if the writer is killed in the middle of a commit.
    await findWriter((other) => other !== pid)
  })
  await load.waitForProgress()
  await load.stop()
  assertPromptResponses(load)
  await annals.assertHolds(load)
})

/** The process of PostgreSQL that serves the writer. */
async function findWriter(fits: (pid: number) => boolean = () => true): Promise<number> {
  const { dataDir } = annals.folder
  const named = `select pid from pg_stat_activity where application_name = 'annals writer'`
  return await eventually(async () => {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const [row] = await query(engine.connection, named)
    assert(typeof row?.['pid'] === 'number' && fits(row['pid']))
    return row['pid']
  })
}
