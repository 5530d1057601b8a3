import { HOUR_MS } from '../../../platform/time/time-units.ts'
import { prefixOf } from '../../../tenancy/key/key-text.ts'
import { rotateKey } from '../../../tenancy/key/rotate-key.ts'
import { defineRoute } from '../../define-route.ts'
import { GRACE_HOURS_MAX, KeyParams, NewKey, RotationInput } from '../../schema/dashboard/key.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readExpiry, readKeyId } from './key-record.ts'
import { readKeyRecord } from './key-resource.ts'

/** POST /dashboard/keys/{keyId}/rotate: creates a replacement, and gives clients time to switch to it. */
export const rotateDashboardKey = defineRoute({
  method: 'POST',
  path: '/dashboard/keys/:keyId/rotate',
  member: 'keys.manage',
  summary: 'Rotate a key',
  description:
    'Creates a key with the same name, scope and permissions. The response is the only one that contains `secret`. The old key is ROTATING until its grace period ends.',
  params: KeyParams,
  body: RotationInput,
  isBodyOptional: true,
  errors: ['conflict'],
  response: { 201: NewKey },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'keyUse'>) => async (request) => {
    const { companyId } = request.viewer
    const keyId = readKeyId(request.params.keyId)
    const nowMs = deps.clock()
    const graceHours = request.body.graceHours ?? GRACE_HOURS_MAX
    const expiresAt = readExpiry(request.body.expiresAt, nowMs)
    const options = {
      graceMs: graceHours * HOUR_MS,
      ...(expiresAt !== undefined && { expiresAt }),
    }
    const answer = await audited(deps, actorOf(request), async (trx, record) => {
      const issued = await rotateKey(trx, { companyId, keyId }, options, nowMs)
      const key = await readKeyRecord(trx, deps, { companyId, keyId: issued.id }, nowMs)
      record({
        action: 'KEY_ROTATED',
        resource: { type: 'key', id: keyId },
        metadata: {
          name: key.name,
          prefix: prefixOf(issued.replaced.kid),
          graceHours,
          newKeyId: key.id,
          newPrefix: key.prefix,
          expiresAt: key.expiresAt,
        },
      })
      return { key, secret: issued.text }
    })
    return answer
  },
})
