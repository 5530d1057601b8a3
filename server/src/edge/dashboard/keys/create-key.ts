import { ApiError } from '../../../errors.ts'
import type { CompanyId, WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { issueKey } from '../../../tenancy/key/issue-key.ts'
import {
  type KeyPermission,
  permissionsOf,
  SCOPE_PERMISSIONS,
} from '../../../tenancy/key/key-permissions.ts'
import type { KeyScope } from '../../../tenancy/principal.ts'
import {
  getWorkspaceSummary,
  refuseSystemWorkspace,
} from '../../../tenancy/workspace/workspace-summary-store.ts'
import { defineRoute } from '../../define-route.ts'
import { KeyInput, NewKey } from '../../schema/dashboard/key.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { readExpiry } from './key-record.ts'
import { readKeyRecord } from './key-resource.ts'

/** POST /dashboard/keys: the only response that contains the new key's text. */
export const createKey = defineRoute({
  method: 'POST',
  path: '/dashboard/keys',
  member: 'keys.manage',
  summary: 'Create a key',
  description: 'The response is the only one that contains `secret`.',
  body: KeyInput,
  errors: ['not_found', 'conflict'],
  response: { 201: NewKey },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'keyUse'>) => async (request) => {
    const { viewer, body } = request
    const { companyId } = viewer
    const nowMs = deps.clock()
    const name = readName(body.name)
    const expiresAt = readExpiry(body.expiresAt, nowMs) ?? null
    const permissions = readLimit(body)
    const answer = await audited(deps, actorOf(request), async (trx, record) => {
      const workspaceId = await workspaceFor(trx, companyId, body, nowMs)
      const options = { companyId, workspaceId, name, permissions, expiresAt }
      const { id, text } = await issueKey(trx, options, nowMs)
      const key = await readKeyRecord(trx, deps, { companyId, keyId: id }, nowMs)
      record({
        action: 'KEY_CREATED',
        resource: { type: 'key', id },
        metadata: {
          name,
          prefix: key.prefix,
          scope: key.scope,
          workspaceId,
          permissions: key.permissions,
          expiresAt: key.expiresAt,
        },
      })
      return { key, secret: text }
    })
    return answer
  },
})

/** Without a permission that its scope allows, a key could do nothing. */
function readLimit({ scope, permissions = null }: KeyLimit): KeyPermission[] | null {
  if (permissionsOf({ scope, permissions }).length > 0) return permissions
  const allowed = new Intl.ListFormat('en', { type: 'disjunction' }).format(
    SCOPE_PERMISSIONS[scope],
  )
  throw invalidFieldError('permissions', `must contain ${allowed} for a ${scope.toLowerCase()} key`)
}

type KeyLimit = { scope: KeyScope; permissions?: KeyPermission[] | null }

async function workspaceFor(
  db: Queryable,
  companyId: CompanyId,
  { scope, workspaceId }: { scope: KeyScope; workspaceId?: string },
  nowMs: number,
): Promise<WorkspaceId | null> {
  const isFit = (scope === 'WORKSPACE') === (workspaceId !== undefined)
  if (!isFit) {
    const message =
      scope === 'WORKSPACE' ? 'is required' : 'is only allowed for keys with workspace scope'
    throw invalidFieldError('workspaceId', message)
  }
  if (workspaceId === undefined) return null
  const workspace = await getWorkspaceSummary(
    db,
    { companyId, named: workspaceId },
    new Date(nowMs),
  )
  refuseSystemWorkspace(workspace)
  return workspace.id
}

function invalidFieldError(name: string, message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The request does not match the schema: /${name} ${message}.`,
    details: [{ path: `/${name}`, message }],
  })
}
