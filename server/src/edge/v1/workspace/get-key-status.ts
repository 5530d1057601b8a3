import type { FastifyReply } from 'fastify'
import type { Clock } from '../../../platform/time/clock.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { healthOf } from '../../../tenancy/key/key-health.ts'
import { permissionsOf } from '../../../tenancy/key/key-permissions.ts'
import { findKeyUse, type KeyUse } from '../../../tenancy/key/key-store.ts'
import { prefixOf } from '../../../tenancy/key/key-text.ts'
import type { CachedKey } from '../../auth/key-cache.ts'
import type { KeyUseRecorder } from '../../auth/key-use-recorder.ts'
import { defineRoute } from '../../define-route.ts'
import { callsToday, latestUse } from '../../key-use.ts'
import type { RequestSlots } from '../../http/request-slots.ts'
import { KeyStatusRecord } from '../../schema/key.ts'

export type GetKeyStatusDeps = {
  keyUse: KeyUseRecorder
  /** Queries finish within a second or fail. */
  dbFast: Queryable
  /**
   * Separate from the slots of requests, so that a status doesn't wait for slow queries of the same company.
   */
  statusSlots: RequestSlots
  clock: Clock
}

/** GET /v1/keys/status: the status of the calling key. */
export const getKeyStatus = defineRoute({
  method: 'GET',
  path: '/v1/keys/status',
  key: { permission: null },
  config: { hasOwnLimits: true },
  summary: 'Get the status of your key',
  description:
    'Returns the key that sent the request. The last use is the one before this request.',
  response: KeyStatusRecord,
  handle:
    (deps: GetKeyStatusDeps) =>
    async ({ key }, reply) => {
      const stored = await readUse(deps, key, reply)
      const use = latestUse(stored, deps.keyUse.peek(key.id))
      const nowMs = deps.clock()
      const { score } = healthOf(
        {
          createdAt: key.createdAt,
          expiresAt: key.expiresAt,
          graceUntil: key.graceUntil,
          lastUsedAt: use?.usedAt ?? null,
          ...callsToday(stored, nowMs),
          companyHasAllowlist: key.allowlist.length > 0,
        },
        nowMs,
      )
      return {
        id: key.id,
        prefix: prefixOf(key.kid),
        scope: key.scope,
        status: key.graceUntil === null ? ('ACTIVE' as const) : ('ROTATING' as const),
        expiresAt: key.expiresAt?.toISOString() ?? null,
        lastUsedAt: use?.usedAt.toISOString() ?? null,
        lastUsedIp: use?.usedIp ?? null,
        lastUsedEndpoint: use?.usedEndpoint ?? null,
        healthScore: score,
        companyId: key.companyId,
        workspaceId: key.workspaceId,
        plan: key.plan,
        permissions: permissionsOf(key),
      }
    },
})

async function readUse(
  { dbFast, statusSlots }: GetKeyStatusDeps,
  { id, companyId }: CachedKey,
  reply: FastifyReply,
): Promise<KeyUse | null> {
  using _slot = await statusSlots.take(companyId, reply)
  return await findKeyUse(dbFast, id)
}
