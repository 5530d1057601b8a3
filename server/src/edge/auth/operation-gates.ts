import type { FastifyInstance } from 'fastify'
import type { Gate } from './gate.ts'
import type { KeyGuard } from './require-key.ts'

/**
 * What each operation asks of a key, by `operationId`, read off the routes as they are registered: what
 * a preflight says of an operation is what stands before it. Call it before the routes.
 */
export function collectGates(app: FastifyInstance, keyGuard: KeyGuard): ReadonlyMap<string, Gate> {
  const gates = new Map<string, Gate>()
  app.addHook('onRoute', ({ schema, onRequest }) => {
    const hooks = [onRequest ?? []].flat()
    const gate = hooks.map((hook) => keyGuard.gateOf(hook)).find((found) => found !== undefined)
    if (gate && schema?.operationId !== undefined) gates.set(schema.operationId, gate)
  })
  return gates
}
