import { getCompanyKey, renameKey } from '../../../tenancy/company-key-store.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import { defineRoute } from '../../define-route.ts'
import { NameInput } from '../../schema/dashboard/company.ts'
import { KeyParams, KeyRecord } from '../../schema/dashboard/key.ts'
import { actorOf, audited } from '../audit.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../name-input.ts'
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
    const place = {
      companyId: request.viewer.companyId,
      keyId: readKeyId(request.params.keyId),
    }
    const name = readName(request.body.name)
    return await audited(deps, actorOf(request), async (trx, note) => {
      await lockCompany(trx, place.companyId)
      const before = await getCompanyKey(trx, place)
      const changed = changedFields({ name: before.name }, { name })
      if (changed) {
        await renameKey(trx, place, name)
        note({
          action: 'KEY_CHANGED',
          resource: { type: 'key', id: place.keyId },
          metadata: changed,
        })
      }
      return await readKeyRecord(trx, deps, place, deps.clock())
    })
  },
})
