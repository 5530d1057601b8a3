import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { deleteMember, updateMemberGrant } from '../../src/tenancy/member/member-store.ts'
import { newId } from '../../src/platform/id.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { deleteSessions } from '../../src/tenancy/sign-in/session-store.ts'
import { countLockWaits, withCompanyLocked } from '../harness/database/company-lock.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { CHANGES, readOperations } from '../harness/openapi/operations.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

// Without workers, which would take a delivery or a run before it is changed.
const annals = await startTestApp({
  role: 'api',
  env: {
    ANNALS_RATE_LIMITS: 'off',
    // Nothing connects to it.
    ANNALS_OIDC_ISSUER: 'http://127.0.0.1:1',
    ANNALS_OIDC_CLIENT_ID: 'annals',
    ANNALS_OIDC_CLIENT_SECRET: 'secret',
    ANNALS_PUBLIC_URL: 'http://annals.test',
  },
})
after(() => annals[Symbol.asyncDispose]())

const company = await annals.createCompany()
const owner = await signInAs(annals, company, 'OWNER')
const workspaceId = company.workspace.id
const EXPORT = { source: 'HOT', format: 'CSV' }
const VIEW = { name: 'View', workspaceId, visibility: 'WORKSPACE', query: {} }
const HOOK = { url: 'https://example.com/hook' }
const RETRY = { status: 'FAILED', throughSequence: 1, previewedAt: '2026-01-01T00:00:00Z' }
const TIMES = { from: new Date(Date.now() - 60_000).toISOString(), to: new Date().toISOString() }

/**
 * Sends a change that waits for the company's lock, revokes the caller's access, and releases the
 * lock.
 */
async function changeLate(
  send: () => Promise<TestResponse>,
  takeAway: (trx: Queryable) => Promise<unknown>,
): Promise<TestResponse> {
  const { sent } = await withCompanyLocked(annals, company.company.id, async (trx) => {
    let isSettled = false
    const pending = send().finally(() => (isSettled = true))
    await eventually(async () => assert(isSettled || (await countLockWaits(annals)) === 1))
    await takeAway(trx)
    return { sent: pending }
  })
  return await sent
}

const refusalOf = ({ status, json }: TestResponse) => [status, json?.code]

async function create(path: string, body?: object): Promise<string> {
  const { status, text, json } = await owner.call('POST', path, { body })
  assert(status < 300, text)
  return json.id ?? json.deliveryId ?? json.key.id
}

type Change = readonly [method: string, path: string, body?: object]

/** A change that works, for every audited operation. */
async function auditedChanges(): Promise<Record<string, Change>> {
  const view = `/dashboard/explorer/views/${await create('/dashboard/explorer/views', VIEW)}`
  const job = `/dashboard/exports/${await create('/dashboard/exports', EXPORT)}`
  const templates = '/dashboard/export-templates'
  const template = `${templates}/${await create(templates, { name: 'Template', body: EXPORT })}`
  const hook = `/dashboard/webhooks/${await create('/dashboard/webhooks', { ...HOOK, workspaceId })}`
  const off = `/dashboard/webhooks/${await create('/dashboard/webhooks', { ...HOOK, workspaceId })}`
  assert.equal((await owner.call('POST', `${off}/disable`)).status, 200)
  const delivery = `${hook}/deliveries/${await create(`${hook}/test`)}`
  const keyInput = { name: 'Key', scope: 'COMPANY' }
  const key = `/dashboard/keys/${await create('/dashboard/keys', keyInput)}`
  const run = `/dashboard/integrity/runs/${await create('/dashboard/integrity/runs', { workspaceId })}`
  const projects = `/dashboard/workspaces/${workspaceId}/projects`
  const project = `${projects}/${await create(projects, { name: 'Project' })}`
  const guest = { email: 'guest@example.com', role: 'ADMIN' }
  const invitation = `/dashboard/invitations/${await create('/dashboard/invitations', guest)}`
  const other = await signInAs(annals, company, 'ADMIN')
  const member = `/dashboard/members/${other.userId}`
  const allowlist = { entries: ['127.0.0.1/32'], forAllCalls: false }
  const name = { name: 'Another name' }
  return {
    endSessions: ['DELETE', '/dashboard/sessions'],
    createExplorerView: ['POST', '/dashboard/explorer/views', VIEW],
    updateExplorerView: ['PATCH', view, name],
    deleteExplorerView: ['DELETE', view],
    createDashboardExport: ['POST', '/dashboard/exports', EXPORT],
    rerunDashboardExport: ['POST', `${job}/rerun`],
    cancelDashboardExport: ['POST', `${job}/cancel`],
    createExportTemplate: ['POST', templates, { name: 'Template', body: EXPORT }],
    updateExportTemplate: ['PATCH', template, name],
    scheduleExportTemplate: ['PUT', `${template}/schedule`, { cadence: 'DAILY' }],
    unscheduleExportTemplate: ['DELETE', `${template}/schedule`],
    deleteExportTemplate: ['DELETE', template],
    runExportTemplate: ['POST', `${template}/run`],
    createDashboardWebhook: ['POST', '/dashboard/webhooks', { ...HOOK, workspaceId }],
    updateDashboardWebhook: ['PATCH', hook, { url: 'https://example.com/other' }],
    deleteDashboardWebhook: ['DELETE', hook],
    enableDashboardWebhook: ['POST', `${off}/enable`],
    disableDashboardWebhook: ['POST', `${hook}/disable`],
    rotateDashboardWebhookSecret: ['POST', `${hook}/rotate-secret`, {}],
    finishDashboardWebhookRotation: ['POST', `${hook}/finish-rotation`],
    testDashboardWebhook: ['POST', `${hook}/test`],
    redeliverDashboardDelivery: ['POST', `${delivery}/redeliver`],
    redeliverDashboardWindow: ['POST', `${hook}/redeliver`, TIMES],
    retryDashboardDeliveries: ['POST', `${hook}/retry`, RETRY],
    createKey: ['POST', '/dashboard/keys', keyInput],
    updateKey: ['PATCH', key, name],
    rotateDashboardKey: ['POST', `${key}/rotate`, {}],
    revokeKey: ['POST', `${key}/revoke`],
    startVerifyRun: ['POST', '/dashboard/integrity/runs', { workspaceId }],
    cancelVerifyRun: ['POST', `${run}/cancel`],
    readNotices: ['POST', '/dashboard/notices/read', { noticeIds: [newId()] }],
    replaceNoticeMail: ['PUT', '/dashboard/notices/mail', { off: ['LIMIT_NEAR'] }],
    updateCompany: ['PATCH', '/dashboard/company', name],
    replaceAllowlist: ['PUT', '/dashboard/company/allowlist', allowlist],
    createWorkspace: ['POST', '/dashboard/workspaces', name],
    updateWorkspace: ['PATCH', `/dashboard/workspaces/${workspaceId}`, name],
    createProject: ['POST', projects, name],
    updateProject: ['PATCH', project, name],
    updateMember: ['PATCH', member, { role: 'VIEWER', workspaceIds: [workspaceId] }],
    removeMember: ['DELETE', member],
    createMemberResetLink: ['POST', `${member}/reset-link`],
    resetMemberSecondFactor: ['POST', `${member}/reset-second-factor`],
    confirmSecondFactor: ['POST', '/dashboard/second-factor/confirm', { code: '123456' }],
    unlinkIdentity: ['DELETE', '/dashboard/identity'],
    createInvitation: ['POST', '/dashboard/invitations', guest],
    withdrawInvitation: ['DELETE', invitation],
  }
}

/** These change nothing, are for callers without a session, or only end the caller's own access. */
const OTHERS = [
  'logIn',
  'finishLogIn',
  'requestPasswordReset',
  'getLink',
  'useLink',
  'startOidcSignIn',
  'logOut',
  'endSession',
  'runExplorerView',
  'preflightDashboardExport',
  'checkWebhookSignature',
  'preflightKey',
  // These also check the current password in their transaction.
  'changePassword',
  'startSecondFactor',
  'createRecoveryCodes',
  'disableSecondFactor',
  // Requires an OWNER, as in the test below.
  'replaceSignInRules',
]

let changes: Record<string, Change> = {}
before(async () => void (changes = await auditedChanges()))

const sendAs = (member: Member, [method, path, body]: Change) =>
  member.call(method, path, body && { body })

test('no change of a member commits after the member was removed', async () => {
  const entries = await readAudit(annals, company)
  for (const [operation, change] of Object.entries(changes)) {
    const admin = await signInAs(annals, company, 'ADMIN')
    const response = await changeLate(
      () => sendAs(admin, change),
      (trx) => deleteMember(trx, admin.userId),
    )
    assert.deepEqual(refusalOf(response), [401, 'not_signed_in'], `${operation} ${response.text}`)
  }
  assert.deepEqual(await readAudit(annals, company), entries)
})

test('the table above contains every operation that changes something', async () => {
  const operations = (await readOperations()).filter(
    ({ method, isDashboard }) => isDashboard && CHANGES.has(method),
  )
  const ids = operations.map(({ id }) => id)
  assert.deepEqual(ids.toSorted(), [...Object.keys(changes), ...OTHERS].toSorted())
})

test('no change commits after the session ended, the role changed, or a workspace was revoked', async () => {
  const createKey: Change = ['POST', '/dashboard/keys', { name: 'Late', scope: 'COMPANY' }]
  const analyze: Change = ['POST', '/dashboard/exports', EXPORT]
  const admin = await signInAs(annals, company, 'ADMIN')
  const demoted = await changeLate(
    () => sendAs(admin, createKey),
    (trx) => updateMemberGrant(trx, admin.userId, { role: 'VIEWER', workspaceIds: [workspaceId] }),
  )
  assert.deepEqual(refusalOf(demoted), [403, 'insufficient_role'])
  const { userId, ...rest } = await signInAs(annals, company, 'ADMIN')
  const signedOut = await changeLate(
    () => sendAs({ userId, ...rest }, createKey),
    (trx) => deleteSessions(trx, { userId }),
  )
  assert.deepEqual(refusalOf(signedOut), [401, 'not_signed_in'])
  const analyst = await signInAs(annals, company, 'ANALYST', [workspaceId])
  const narrowed = await changeLate(
    () => sendAs(analyst, analyze),
    (trx) => updateMemberGrant(trx, analyst.userId, { role: 'ANALYST', workspaceIds: [] }),
  )
  assert.deepEqual(refusalOf(narrowed), [403, 'insufficient_role'])
})

test('no change that needs an OWNER commits after its OWNER became an ADMIN', async () => {
  const invited = { email: 'second-owner@example.com', role: 'OWNER' }
  const invitation = `/dashboard/invitations/${await create('/dashboard/invitations', invited)}`
  const analyst = await signInAs(annals, company, 'ANALYST', [workspaceId])
  const changesOfOwners: readonly Change[] = [
    ['DELETE', invitation],
    ['POST', '/dashboard/invitations', { email: 'third-owner@example.com', role: 'OWNER' }],
    ['POST', '/dashboard/invitations', { ...invited, role: 'ADMIN' }],
    ['PATCH', `/dashboard/members/${analyst.userId}`, { role: 'OWNER' }],
    ['PATCH', `/dashboard/members/${owner.userId}`, { role: 'ADMIN' }],
    ['DELETE', `/dashboard/members/${owner.userId}`],
    ['POST', `/dashboard/members/${owner.userId}/reset-link`],
    ['POST', `/dashboard/members/${owner.userId}/reset-second-factor`],
    ['PUT', '/dashboard/company/sign-in', { requiresSecondFactor: true }],
  ]
  for (const change of changesOfOwners) {
    const demoted = await signInAs(annals, company, 'OWNER')
    const response = await changeLate(
      () => sendAs(demoted, change),
      (trx) => updateMemberGrant(trx, demoted.userId, { role: 'ADMIN', workspaceIds: null }),
    )
    assert.deepEqual(refusalOf(response), [403, 'insufficient_role'], JSON.stringify(change))
  }
})

test('a change by a member whose role changed meanwhile is audited with the new role', async () => {
  const demoted = await signInAs(annals, company, 'OWNER')
  const response = await changeLate(
    () => sendAs(demoted, ['POST', '/dashboard/keys', { name: 'Late', scope: 'COMPANY' }]),
    (trx) => updateMemberGrant(trx, demoted.userId, { role: 'ADMIN', workspaceIds: null }),
  )
  assert.equal(response.status, 201, response.text)
  const entry = (await readAudit(annals, company)).at(-1)
  assert.equal(entry?.action, 'KEY_CREATED')
  assert.deepEqual([entry.actor.id, entry.actor.role], [demoted.userId, 'ADMIN'])
})

test('a member who delays the last byte until after the removal gets no key', async () => {
  const admin = await signInAs(annals, company, 'ADMIN')
  const text = JSON.stringify({ name: 'backdoor', scope: 'COMPANY' })
  await using connection = new RawConnection(annals.url)
  connection.send(
    `POST /dashboard/keys HTTP/1.1\r\nhost: x\r\ncookie: ${admin.cookie}\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text.slice(0, -1)}`,
  )
  // Also if the request arrives first: the removal follows it on the same node.
  await admin.call('GET', '/dashboard/session')
  assert.equal((await owner.call('DELETE', `/dashboard/members/${admin.userId}`)).status, 204)
  assert.equal((await connection.send(text.slice(-1)).response()).status, 401)
  const { text: keys } = await owner.call('GET', '/dashboard/keys')
  assert(!keys.includes('backdoor'))
})

test('no change with a key commits after the key was revoked', async () => {
  const key = company.companyKey
  const { json } = await annals.call('POST', `/v1/workspaces/${workspaceId}/webhooks`, {
    key,
    body: HOOK,
  })
  const hook = `/v1/webhooks/${json.id}`
  const tested = await annals.call('POST', `${hook}/test`, { key })
  const created = await annals.call('POST', '/v1/exports', { key, body: EXPORT })
  const job = `/v1/exports/${created.json.jobId}`
  const table: Change[] = [
    ['POST', `/v1/workspaces/${workspaceId}/webhooks`, HOOK],
    ['PATCH', hook, { url: 'https://example.com/other' }],
    ['POST', `${hook}/enable`],
    ['POST', `${hook}/disable`],
    ['POST', `${hook}/rotate-secret`],
    ['POST', `${hook}/finish-rotation`],
    ['POST', `${hook}/test`],
    ['POST', `${hook}/deliveries/${tested.json.deliveryId}/redeliver`],
    ['POST', `${hook}/redeliver`, TIMES],
    ['DELETE', hook],
    ['POST', '/v1/exports', EXPORT],
    ['POST', `${job}/rerun`],
    ['POST', `${job}/cancel`],
  ]
  for (const [method, path, body] of table) {
    const made = await owner.call('POST', '/dashboard/keys', {
      body: { name: 'Short-lived', scope: 'COMPANY' },
    })
    const response = await changeLate(
      () => annals.call(method, path, { key: made.json.secret, ...(body && { body }) }),
      (trx) =>
        trx
          .updateTable('api_key')
          .set({ revoked_at: new Date() })
          .where('id', '=', made.json.key.id)
          .execute(),
    )
    assert.deepEqual(
      refusalOf(response),
      [401, 'invalid_api_key'],
      `${method} ${path} ${response.text}`,
    )
  }
})
