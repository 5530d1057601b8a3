import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Clock } from '../../platform/clock.ts'
import type { Queryable } from '../../platform/pg.ts'
import { healthOf } from '../../tenancy/key-health.ts'
import { findKeyUse } from '../../tenancy/key-store.ts'
import { prefixOf } from '../../tenancy/key-text.ts'
import type { KeyUseRecorder } from '../auth/key-use-recorder.ts'
import type { RequireKey } from '../auth/require-key.ts'
import { callsToday, latestUse } from '../key-use.ts'
import { errorResponses, KEY_ERRORS } from '../schema/common.ts'
import { KeyStatus } from '../schema/key.ts'

export type GetKeyStatusDeps = {
  requireKey: RequireKey
  keyUse: KeyUseRecorder
  /** Within a second or not at all. */
  hasty: Queryable
  clock: Clock
}

/** GET /v1/keys/status: what the service knows of the key that asks. */
export const getKeyStatus =
  (deps: GetKeyStatusDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/v1/keys/status',
      {
        onRequest: deps.requireKey(),
        // One small read, which must not wait for slow requests of the same company.
        config: { hasOwnLimits: true },
        schema: {
          operationId: 'getKeyStatus',
          summary: 'Status of the calling key',
          description: 'Last use is the one before this call.',
          tags: ['Keys'],
          response: { 200: KeyStatus, ...errorResponses('invalid_request', ...KEY_ERRORS) },
        },
      },
      async ({ key }) => {
        const stored = await findKeyUse(deps.hasty, key.id)
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
        }
      },
    )
  }
