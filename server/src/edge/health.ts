import { Type } from 'typebox'
import { ApiError } from '../errors.ts'
import { defineRoute } from './define-route.ts'
import { STRICT } from './schema/common.ts'
import { named } from './schema/named.ts'

export type HealthDeps = {
  /** Resolves to false if the database is unreachable or keys can't be read. Has a timeout. */
  canReachDatabase: () => Promise<boolean>
  /** False while the database doesn't accept writes. */
  canWrite: () => boolean
  isDraining: () => boolean
}

const Health = named(
  'Health',
  Type.Object(
    { ok: Type.Boolean({ description: 'Whether the node works.' }) },
    { ...STRICT, description: 'The health of the node.' },
  ),
)

/** GET /health: 200 while the process responds. `ok` says whether it works. */
export const getHealth = defineRoute({
  method: 'GET',
  path: '/health',
  public: true,
  summary: 'Check health',
  description:
    "Responds with 200 while the process runs. `ok` is false while the database is unreachable or keys can't be read.",
  response: Health,
  handle: (deps: HealthDeps) => async () => ({ ok: await deps.canReachDatabase() }),
})

/** GET /ready: for load balancers, which send no traffic to a node that is draining or can't write. */
export const getReady = defineRoute({
  method: 'GET',
  path: '/ready',
  public: true,
  summary: 'Check readiness',
  description:
    "Responds with 503 while the database is unreachable or read-only, while keys can't be read, and during shutdown. Load balancers use it to stop sending traffic to a node.",
  errors: ['unavailable'],
  response: Health,
  handle: (deps: HealthDeps) => async () => {
    if (deps.isDraining()) throw new ApiError('unavailable', { message: 'This node is stopping.' })
    if (!(await deps.canReachDatabase())) throw new ApiError('unavailable')
    if (!deps.canWrite()) {
      throw new ApiError('unavailable', {
        message: "The database doesn't accept writes. Queries still work.",
      })
    }
    return { ok: true }
  },
})
