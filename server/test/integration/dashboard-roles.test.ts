import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { POLICY } from '../../src/tenancy/policy.ts'
import { ROLES, type Role } from '../../src/tenancy/member/user-store.ts'
import { callAs, signInAs } from '../harness/dashboard/dashboard.ts'
import { startTestApp } from '../harness/app/start-app.ts'

type Operation = { operationId: string; 'x-permission'?: keyof typeof POLICY }
type Route = { method: string; path: string; operation: Operation }

const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../openapi/dashboard.json'), 'utf8'),
)
const routes: Route[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    operation,
  })),
)

/** Operations that need no session. */
const PUBLIC = [
  'logIn',
  'finishLogIn',
  'requestPasswordReset',
  'getLink',
  'useLink',
  'getSignInOptions',
  'startOidcSignIn',
  'finishOidcSignIn',
]

/** An independent copy of the policy: a change of the policy is a change here too. */
const ROLES_OF: Record<keyof typeof POLICY, string> = {
  'self.enroll': 'OWNER ADMIN ANALYST VIEWER',
  'self.manage': 'OWNER ADMIN ANALYST VIEWER',
  'events.read': 'OWNER ADMIN ANALYST VIEWER',
  'views.manage': 'OWNER ADMIN ANALYST VIEWER',
  'exports.read': 'OWNER ADMIN ANALYST VIEWER',
  'exports.create': 'OWNER ADMIN ANALYST',
  'templates.read': 'OWNER ADMIN ANALYST VIEWER',
  'templates.manage': 'OWNER ADMIN ANALYST',
  'integrity.read': 'OWNER ADMIN ANALYST VIEWER',
  'integrity.verify': 'OWNER ADMIN ANALYST',
  'webhooks.read': 'OWNER ADMIN ANALYST VIEWER',
  'webhooks.manage': 'OWNER ADMIN',
  'keys.read': 'OWNER ADMIN',
  'keys.manage': 'OWNER ADMIN',
  'notices.read': 'OWNER ADMIN ANALYST VIEWER',
  'company.read': 'OWNER ADMIN ANALYST VIEWER',
  'company.manage': 'OWNER ADMIN',
  'usage.read': 'OWNER ADMIN ANALYST VIEWER',
  'members.read': 'OWNER ADMIN',
  'members.manage': 'OWNER ADMIN',
  'owners.manage': 'OWNER',
  'security.manage': 'OWNER',
  'activity.read': 'OWNER ADMIN',
}

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/** Uses unknown ids, because permissions are checked before ids. */
function addressOf({ path }: Route): string {
  return path.replaceAll(/\{\w+\}/g, () => newId())
}

test('the policy matches the documentation', () => {
  const printed = Object.fromEntries(
    Object.entries(POLICY).map(([permission, roles]) => [permission, roles.join(' ')]),
  )
  assert.deepEqual(printed, ROLES_OF)
})

test('every route names its permission, except those before sign-in', () => {
  const open = routes.filter(({ operation }) => operation['x-permission'] === undefined)
  assert.deepEqual(open.map(({ operation }) => operation.operationId).toSorted(), PUBLIC.toSorted())
  assert(routes.length > 60, `${routes.length} routes`)
})

test('every route rejects requests without a session', async () => {
  for (const route of routes) {
    if (route.operation['x-permission'] === undefined) continue
    const { status, json } = await callAs(annals, '')(route.method, addressOf(route))
    assert.equal(status, 401, `${route.method} ${route.path}`)
    assert.equal(json.code, 'not_signed_in')
  }
})

for (const role of ROLES) {
  test(`${role}: each route is allowed or denied as the policy says`, async () => {
    const company = await annals.createCompany()
    for (const route of routes) {
      const permission = route.operation['x-permission']
      // It never ends on its own. Its access is tested separately.
      if (permission === undefined || route.path === '/dashboard/events/live') continue
      // Each has its own session, because some routes end it.
      const member = await signInAs(annals, company, role, workspacesOf(role, company.workspace.id))
      const { status, json } = await member.call(route.method, addressOf(route))
      const name = `${role} ${route.method} ${route.path}`
      const isOpen = ROLES_OF[permission].split(' ').includes(role)
      if (isOpen) assert.notEqual(json?.code, 'insufficient_role', name)
      else assert.equal(json?.code, 'insufficient_role', name)
      assert(status < 500, `${name}: ${status}`)
    }
  })
}

function workspacesOf<T>(role: Role, workspaceId: T): T[] {
  return role === 'OWNER' || role === 'ADMIN' ? [] : [workspaceId]
}
