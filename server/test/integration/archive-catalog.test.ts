import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { query } from '../harness/database/engine.ts'
import { sendEvents } from '../harness/proof/proof.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

test('verification reports a file that the catalog lists where no event can be', async () => {
  const { workspace, workspaceKey } = await annals.createCompany()
  const { database, archive } = annals.app
  const { connection } = annals.database
  await sendEvents(annals, workspaceKey, 20)
  await archiveAll(annals)
  const [key = ''] = listFiles(annals, workspace.id)
  await query(connection, 'alter table segment drop constraint segment_check')
  const positions = ['-9, 0', '-9223372036854775808, -9223372036854775808', '9, 8']
  for (const position of positions) {
    await query(
      connection,
      `create temporary table listed as select * from segment where workspace_id = '${workspace.id}';
       update listed set (first_seq, last_seq) = (${position});
       insert into segment table listed; drop table listed`,
    )
    const broken = await verifyChain(database, archive, workspace.id)
    assert.equal(
      broken.ok ? '' : broken.problem,
      `the catalog lists ${key} at a position that no event can have`,
    )
    await query(connection, 'delete from segment where first_seq < 1 or last_seq < first_seq')
  }
  assert((await verifyChain(database, archive, workspace.id)).ok)
})
