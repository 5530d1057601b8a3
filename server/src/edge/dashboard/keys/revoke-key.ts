import * as keyStore from '../../../tenancy/key/company-key-store.ts'
import { prefixOf } from '../../../tenancy/key/key-text.ts'
import { defineRoute } from '../../define-route.ts'
import { KeyParams, KeyRecord } from '../../schema/dashboard/key.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readKeyId } from './key-record.ts'
import { readKeyRecord } from './key-resource.ts'

/** POST /dashboard/keys/{keyId}/revoke: can't be undone. */
export const revokeKey = defineRoute({
  method: 'POST',
  path: '/dashboard/keys/:keyId/revoke',
  member: 'keys.manage',
  summary: 'Revoke a key',
  description:
    'All nodes refuse the key within two seconds. Revoking a revoked key changes nothing.',
  params: KeyParams,
  response: KeyRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'keyUse'>) => async (request) => {
    const { companyId } = request.viewer
    const target = { companyId, keyId: readKeyId(request.params.keyId) }
    const nowMs = deps.clock()
    return await audited(deps, actorOf(request), async (trx, record) => {
      const { name, kid } = await keyStore.getCompanyKey(trx, target)
      if (await keyStore.markKeyRevoked(trx, target, new Date(nowMs))) {
        record({
          action: 'KEY_REVOKED',
          resource: { type: 'key', id: target.keyId },
          metadata: { name, prefix: prefixOf(kid) },
        })
      }
      return await readKeyRecord(trx, deps, target, nowMs)
    })
  },
})
