import type { FastifyInstance } from 'fastify'
import type { Gate } from './gate.ts'
import type { KeyGuard } from './require-key.ts'

/**
 * Collects what each operation requires of a key, by `operationId`, from the routes as they are registered.
 * An access check therefore uses the same rules as the route. Call it before registering the routes.
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
