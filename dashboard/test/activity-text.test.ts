import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { AUDIT_ACTIONS } from '../../server/src/tenancy/caller.ts'
import { actorText } from '../src/pages/company/activity/activity-actor.ts'
import { activityQuery, readActivitySearch } from '../src/pages/company/activity/activity-search.ts'
import { activityText } from '../src/pages/company/activity/activity-text.ts'

const NAMES = { workspace: (id: string) => `workspace ${id}`, webhook: (id: string) => id }

test('every audited action has a sentence in the dashboard and a row in the docs', () => {
  const docs = readFileSync(new URL('../../docs/dashboard.md', import.meta.url), 'utf8')
  for (const action of AUDIT_ACTIONS) {
    assert.doesNotMatch(
      activityText({ action, resource: null, metadata: null }, NAMES),
      /performed/,
    )
    assert(docs.includes(`| \`${action}\``), `${action} is not in docs/dashboard.md`)
  }
})

const SENTENCES: readonly [action: string, metadata: Record<string, unknown>, text: string][] = [
  [
    'LOGIN_THROTTLED',
    { attempts: 12 },
    'had 12 sign-in attempts refused after too many wrong attempts',
  ],
  [
    'LOGIN_SUCCEEDED',
    { secondFactor: 'RECOVERY_CODE', recoveryCodesLeft: 9 },
    'signed in with a recovery code, 9 left',
  ],
  ['SECOND_FACTOR_FAILED', { attempts: 3 }, 'entered a wrong second factor 3 times'],
  [
    'COMPANY_CHANGED',
    { before: { requiresSecondFactor: false }, after: { requiresSecondFactor: true } },
    'required a second factor of all members',
  ],
  [
    'COMPANY_CHANGED',
    { before: { name: 'Acme' }, after: { name: 'Apex' } },
    'renamed the company from Acme to Apex',
  ],
  [
    'PLAN_CHANGED',
    { before: { plan: 'PRO' }, after: { plan: 'FREE' } },
    'changed the plan from PRO to FREE',
  ],
  [
    'EXPORT_DOWNLOAD_REFUSED',
    { code: 'plan_required', attempts: 3 },
    'was refused the download of an export 3 times (plan_required)',
  ],
  [
    'VERIFY_FINISHED',
    { status: 'HOLDS', workspaces: 2, events: 9 },
    'verified 2 workspaces: every chain is intact',
  ],
  [
    'VERIFY_FINISHED',
    { verdict: 'The chain is broken at event 3: x.', workspaceId: 'w' },
    'verified workspace w: The chain is broken at event 3: x.',
  ],
  [
    'ARCHIVE_FAILED',
    { workspaceIds: ['a', 'b'] },
    'could not archive events of workspace a, workspace b',
  ],
  [
    'SIGNING_KEY_CHANGED',
    { publicKey: 'AbC=', previousPublicKey: 'DeF=', previousUntil: '2026-03-01T00:00:00.000Z' },
    'changed the key that signs checkpoints to AbC=',
  ],
  [
    'WEBHOOK_DISABLED',
    { url: 'https://x', reason: 'No delivery succeeded for five days.' },
    'disabled the webhook https://x: No delivery succeeded for five days.',
  ],
]
for (const [action, metadata, text] of SENTENCES) {
  test(`${action} reads "${text}"`, () => {
    assert.equal(activityText({ action, resource: null, metadata }, NAMES), text)
  })
}

test('the operator and Annals have names, also in entries of version 0.2', () => {
  const nameOf = (actor: Record<string, unknown>) => actorText({ actor, metadata: {} })
  assert.equal(nameOf({ id: 'operator', role: 'operator' }), 'Operator')
  assert.equal(nameOf({ email: 'operator' }), 'Operator')
  assert.equal(nameOf({ id: 'annals', role: 'service' }), 'Annals')
  assert.equal(nameOf({ id: 'u', email: 'ada@example.com', role: 'ADMIN' }), 'ada@example.com')
})

test('the filters in the URL become filters of the event list, and unknown ones are ignored', () => {
  const search = readActivitySearch({
    subject: 'webhook',
    source: 'api',
    actor: 'ada@example.com',
    range: '24h',
  })
  assert.deepEqual(activityQuery(search, Date.UTC(2026, 0, 2)), {
    resourceType: ['webhook'],
    category: ['api'],
    actorEmail: ['ada@example.com'],
    from: '2026-01-01T00:00:00.000Z',
  })
  assert.deepEqual(activityQuery({ actor: 'operator' }, 0), { actorId: ['operator'] })
  assert.deepEqual(readActivitySearch({ subject: 'toString', range: '5y', actor: 7 }), {})
})
