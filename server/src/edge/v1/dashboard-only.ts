import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import type { RequireKey } from '../auth/require-key.ts'

/** Never reached, because the gate refuses every key. */
const refuse = async (): Promise<never> => {
  throw new ApiError('dashboard_only')
}

/**
 * POST /v1/workspaces/{workspaceId}/keys and POST /v1/keys/{keyId}/rotate: a key can't create keys. Both are
 * refused before the body or the id is read, so they reveal nothing about either.
 */
export const dashboardOnlyRoutes =
  (deps: { requireKey: RequireKey }): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/v1/workspaces/:workspaceId/keys',
      {
        onRequest: deps.requireKey({ dashboardOnly: true }),
        schema: {
          operationId: 'createWorkspaceKey',
          summary: 'Create a key (dashboard only)',
          description: 'Always responds with 403. Create keys in the dashboard.',
          tags: ['Keys'],
          params: Type.Object({ workspaceId: Type.String() }),
        },
      },
      refuse,
    )
    app.post(
      '/v1/keys/:keyId/rotate',
      {
        onRequest: deps.requireKey({ dashboardOnly: true }),
        schema: {
          operationId: 'rotateKey',
          summary: 'Rotate a key (dashboard only)',
          description: 'Always responds with 403. Rotate keys in the dashboard.',
          tags: ['Keys'],
          params: Type.Object({ keyId: Type.String() }),
        },
      },
      refuse,
    )
  }
