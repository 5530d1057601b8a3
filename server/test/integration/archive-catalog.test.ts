import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { sendEvents } from '../harness/proof/proof.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

test('verification reports a file that the catalog lists below event 1', async () => {
  const { workspace, workspaceKey } = await annals.createCompany()
  const { database, archive } = annals.app
  const { connection } = annals.database
  await sendEvents(annals, workspaceKey, 20)
  await archiveAll(annals)
  const [key = ''] = listFiles(annals, workspace.id)
  await query(
    connection,
    `alter table segment drop constraint segment_check;
     create temporary table listed as select * from segment where workspace_id = '${workspace.id}';
     update listed set first_seq = -9, last_seq = 0;
     insert into segment table listed; drop table listed`,
  )
  const broken = await verifyChain(database, archive, workspace.id)
  assert.equal(
    broken.ok ? '' : broken.problem,
    `the archive continues with event -9 (${key}), expected event 1`,
  )
  await query(connection, `delete from segment where first_seq < 1`)
  assert((await verifyChain(database, archive, workspace.id)).ok)
})
