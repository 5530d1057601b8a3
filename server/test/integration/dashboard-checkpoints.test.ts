import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  CHECKPOINT_DAYS_MAX,
  keepDayCheckpoint,
} from '../../src/ledger/tree/checkpoint-day-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { enroll } from '../harness/dashboard/console.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { createSigner, openNote, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { storeCosignature } from '../harness/proof/store-cosignature.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
// As `api`, so that only the signers of a test sign.
const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())

const PATH = '/dashboard/integrity/checkpoints'
const listFor = (member: Pick<Member, 'call'>, { workspace }: CreatedCompany, rest = '') =>
  member.call('GET', `${PATH}?workspaceId=${workspace.id}${rest}`)

/** Signs new events at noon of a day of March. */
async function signOn(day: number, { workspace, workspaceKey }: CreatedCompany, hour = 12) {
  await sendEvents(annals, workspaceKey, 1)
  const at = Date.UTC(2026, 2, day, hour)
  await signWhole(createSigner(annals, { clock: () => at }), workspace.id)
}

test('returns the newest checkpoint and the last one of each earlier day', async () => {
  const company = await annals.createCompany()
  const owner = await enroll(annals, company, 'OWNER')
  for (const [day, hour] of [
    [1, 8],
    [1, 12],
    [1, 23],
    [2, 0],
    [5, 12],
    [5, 13],
  ] as const) {
    await signOn(day, company, hour)
  }
  const { status, json } = await listFor(owner, company)
  assert.equal(status, 200)
  assert.deepEqual([json.latest.size, json.isSigning, json.refusal], [6, true, null])
  assert.deepEqual(json.latest.witnesses, [])
  assert.deepEqual(
    json.days.map(({ size, signedAt }: { size: number; signedAt: string }) => [size, signedAt]),
    [
      [4, '2026-03-02T00:00:00.000Z'],
      [3, '2026-03-01T23:00:00.000Z'],
    ],
  )
  for (const { note, vkey, size, root } of [json.latest, ...json.days]) {
    const signed = openNote(note, vkey)
    assert.deepEqual([signed.size, signed.root], [size, root])
  }
  const { json: page } = await listFor(owner, company, '&limit=1')
  assert.equal(page.days.length, 1)
})

test('names the witnesses that cosigned the newest checkpoint', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  await signOn(1, company)
  await storeCosignature(annals.app.database.db, company.workspace.id, 'witness.example')
  const { json } = await listFor(owner, company)
  assert.deepEqual(json.latest.witnesses, ['witness.example'])
  await signOn(2, company)
  const { json: later } = await listFor(owner, company)
  assert.deepEqual(later.latest.witnesses, [])
  assert.equal(later.days[0].note, json.latest.note, 'the last checkpoint of a day keeps them')
})

test('says why the signer refuses a chain', async () => {
  const company = await annals.createCompany()
  const { workspace } = company
  const owner = await signInAs(annals, company, 'OWNER')
  await signOn(1, company)
  await query(
    annals.database.connection,
    `update chain_head set seq = 0, hash = repeat('0', 64), last_id = null where workspace_id = '${workspace.id}'`,
  )
  assert.equal(await signWhole(createSigner(annals), workspace.id), 'refused')
  const { json } = await listFor(owner, company)
  assert.match(json.refusal, /has 0 events, but a checkpoint of 1 events/)
})

test('keeps at most 400 days', async () => {
  const company = await annals.createCompany()
  const { id } = company.workspace
  const { db } = annals.app.database
  const root = Buffer.alloc(32)
  for (let day = 0; day < CHECKPOINT_DAYS_MAX + 5; day += 1) {
    const signedAt = new Date(Date.UTC(2025, 0, 1) + day * DAY_MS)
    await keepDayCheckpoint(db, id, { size: day, root, note: 'note', vkey: 'vkey', signedAt })
  }
  const owner = await signInAs(annals, company, 'OWNER')
  const { json } = await listFor(owner, company, `&limit=${CHECKPOINT_DAYS_MAX}`)
  assert.equal(json.days.length, CHECKPOINT_DAYS_MAX)
  const stored = `select from checkpoint_day where workspace_id = '${id}'`
  assert.equal((await query(annals.database.connection, stored)).length, CHECKPOINT_DAYS_MAX)
  assert.equal(json.days[0].size, CHECKPOINT_DAYS_MAX + 4)
})

test('only members who can see the workspace get its checkpoints', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces
  assert(production && staging)
  await signOn(1, company)
  const viewer = await signInAs(annals, company, 'VIEWER', [production.id])
  assert.equal((await listFor(viewer, company)).json.latest.size, 1)
  const others = [
    await signInAs(annals, company, 'ANALYST', [staging.id]),
    await signInAs(annals, await annals.createCompany(), 'OWNER'),
  ]
  for (const other of others) {
    const { status, json } = await listFor(other, company)
    assert.deepEqual([status, json.code], [404, 'not_found'])
  }
})

test('without an archive, nothing is signed', async () => {
  await using plain = await startTestApp({ role: 'api', hasArchive: false })
  const company = await plain.createCompany()
  const owner = await enroll(plain, company, 'OWNER')
  const { json } = await listFor(owner, company)
  assert.deepEqual(json, { latest: null, isSigning: false, refusal: null, days: [] })
})
