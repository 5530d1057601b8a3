import { getCompanyKey, renameKey } from '../../../tenancy/key/company-key-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NameInput } from '../../schema/dashboard/company.ts'
import { KeyParams, KeyRecord } from '../../schema/dashboard/key.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import { readKeyId } from './key-record.ts'
import { readKeyRecord } from './key-resource.ts'

/** PATCH /dashboard/keys/{keyId}: renames the key. */
export const updateKey = defineRoute({
  method: 'PATCH',
  path: '/dashboard/keys/:keyId',
  member: 'keys.manage',
  summary: 'Rename a key',
  description: 'Changes the name of the key.',
  params: KeyParams,
  body: NameInput,
  response: KeyRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'keyUse'>) => async (request) => {
    const target = {
      companyId: request.viewer.companyId,
      keyId: readKeyId(request.params.keyId),
    }
    const name = readName(request.body.name)
    return await audited(deps, actorOf(request), async (trx, record) => {
      const before = await getCompanyKey(trx, target)
      const changed = changedFields({ name: before.name }, { name })
      if (changed) {
        await renameKey(trx, target, name)
        record({
          action: 'KEY_CHANGED',
          resource: { type: 'key', id: target.keyId },
          metadata: changed,
        })
      }
      return await readKeyRecord(trx, deps, target, deps.clock())
    })
  },
})
