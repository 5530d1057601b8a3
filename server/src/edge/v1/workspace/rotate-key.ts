import { Type } from 'typebox'
import { defineRoute } from '../../define-route.ts'
import { refuseKey } from './refuse-key.ts'

/** POST /v1/keys/{keyId}/rotate: a key can't rotate keys. */
export const rotateKeyRoute = defineRoute({
  method: 'POST',
  path: '/v1/keys/:keyId/rotate',
  key: { permission: null, dashboardOnly: true },
  summary: 'Rotate a key (dashboard only)',
  description: 'Always responds with 403. Rotate keys in the dashboard.',
  params: Type.Object({ keyId: Type.String() }),
  handle: () => refuseKey,
})
