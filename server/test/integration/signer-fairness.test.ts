import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startSignerWorker } from '../../src/outlet/proof/signer-worker.ts'
import type { WorkspaceId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { createSigner, readCheckpoint, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const BUSY_WORKSPACES = 200

/** A company can create 100 workspaces, so the others were once of a second one. */
async function createBusy(): Promise<Set<WorkspaceId>> {
  const namesOf = (half: string) =>
    Array.from({ length: BUSY_WORKSPACES / 2 - 1 }, (_, nth) => `${half} ${nth}`)
  const first = await annals.createCompany({ workspaces: ['First', ...namesOf('first')] })
  const second = await annals.createCompany({ workspaces: ['Second', ...namesOf('second')] })
  const workspaces = [...first.workspaces, ...second.workspaces]
  for (const { workspaceKey } of workspaces) await sendEvents(annals, workspaceKey, 1)
  await query(
    annals.database.connection,
    `update workspace set company_id = '${first.company.id}'
      where company_id = '${second.company.id}' and kind = 'CUSTOMER'`,
  )
  return new Set(workspaces.map(({ id }) => id))
}

test('a company is signed in its first turn although 200 workspaces of another are due', async () => {
  const busy = await createBusy()
  const [waiting, late] = [await annals.createCompany(), await annals.createCompany()]
  // Both were signed before, so they have waited for less time than all of the 200.
  for (const { workspace, workspaceKey } of [waiting, late]) {
    await sendEvents(annals, workspaceKey, 1)
    await signWhole(createSigner(annals), workspace.id)
  }
  await sendEvents(annals, waiting.workspaceKey, 1)

  const signer = createSigner(annals)
  const order: WorkspaceId[] = []
  const observed = {
    currentKey: () => signer.currentKey(),
    sign: async (id: WorkspaceId, signal?: AbortSignal) => {
      order.push(id)
      // Gets a new event when the worker has already listed what is due.
      if (order.length === 1) await sendEvents(annals, late.workspaceKey, 1)
      return await signer.sign(id, signal)
    },
  }
  const logger = createLogger('silent')
  await using _worker = startSignerWorker({ db, signer: observed, checkpointSeconds: 60, logger })
  for (const { workspace } of [waiting, late]) {
    await eventually(async () => {
      assert.equal((await readCheckpoint(annals, workspace.id))?.size, 2)
    })
  }
  await eventually(() => assert(order.filter((id) => busy.has(id)).length >= BUSY_WORKSPACES))
  const busyBefore = ({ workspace }: typeof late) =>
    order.slice(0, order.indexOf(workspace.id)).filter((id) => busy.has(id)).length
  assert(busyBefore(waiting) <= 4, `${busyBefore(waiting)} of 200 before the waiting company`)
  assert(busyBefore(late) <= 16, `${busyBefore(late)} of 200 before the late company`)
})
