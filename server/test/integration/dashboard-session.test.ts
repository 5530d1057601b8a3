import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audited } from '../../src/edge/dashboard/audit.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace-store.ts'
import { callAs, readAudit, signInAs } from '../harness/dashboard.ts'
import { startTestApp } from '../harness/start-app.ts'

test('a member sees his company, his workspaces and what his role may do', async () => {
  await using app = await startTestApp()
  const company = await app.found({ workspaces: ['Production', 'Staging'] })
  const viewer = await signInAs(app, company, 'VIEWER', [company.workspace.id])
  const { status, json } = await viewer.call('GET', '/dashboard/session')
  assert.equal(status, 200)
  assert.deepEqual(json.user, { id: viewer.userId, email: viewer.email, role: 'VIEWER' })
  assert.deepEqual(
    json.workspaces.map(({ name }: { name: string }) => name),
    ['Production'],
  )
  assert(!json.permissions.includes('keys.manage'))
  const owner = await signInAs(app, company, 'OWNER')
  const { json: all } = await owner.call('GET', '/dashboard/session')
  assert.deepEqual(
    all.workspaces.map(({ name }: { name: string }) => name),
    ['Dashboard activity', 'Production', 'Staging'],
  )
})

test('without a session, or with a made-up one, nobody is signed in', async () => {
  await using app = await startTestApp()
  for (const cookie of ['', 'annals_session=x', `annals_session=${'A'.repeat(43)}`]) {
    const { status, json, headers } = await callAs(app, cookie)('GET', '/dashboard/session')
    assert.equal(status, 401)
    assert.equal(json.code, 'not_signed_in')
    assert.equal(headers.get('www-authenticate'), null)
  }
})

test('a change and its entry in the audit are stored together or not at all', async () => {
  await using app = await startTestApp()
  const company = await app.found()
  const { db } = app.app.database
  const deps = { db, clock: Date.now }
  const actor = {
    companyId: company.company.id,
    userId: null,
    email: 'ana@example.com',
    role: null,
    address: '127.0.0.1',
    traceId: 'a'.repeat(32),
  }
  const rename = (name: string, fails: boolean) =>
    audited(deps, actor, async (trx, note) => {
      await trx.updateTable('company').set({ name }).where('id', '=', company.company.id).execute()
      note({ action: 'COMPANY_CHANGED', metadata: { name } })
      if (fails) throw new Error('changed his mind')
    })
  await rename('First', false)
  await assert.rejects(rename('Second', true), /changed his mind/)
  await Promise.all(['Third', 'Fourth', 'Fifth'].map((name) => rename(name, false)))
  const entries = await readAudit(app, company)
  assert.deepEqual(entries[0], {
    action: 'COMPANY_CHANGED',
    actor: { email: 'ana@example.com' },
    resource: null,
    metadata: { name: 'First', address: '127.0.0.1' },
  })
  assert.equal(entries.length, 4)
  const workspaceId = await getSystemWorkspace(db, company.company.id)
  assert.equal((await verifyChain(db, app.app.archive, workspaceId)).ok, true)
})
