import type { FastifySchema } from 'fastify'
import type { Permission } from '../../tenancy/policy.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Gate } from '../auth/gate.ts'

declare module 'fastify' {
  interface FastifySchema {
    /** A route without one is in no document. */
    operationId?: string
    summary?: string
    description?: string
    tags?: readonly string[]
    /** Empty for a route that needs neither a key nor a session. */
    security?: readonly []
    /** The content type of the response, if it isn't JSON. */
    produces?: string
    /** Errors that don't follow from the route's guard and parameters. */
    errors?: readonly ErrorCode[]
  }
}

/** A route as the documents describe it. */
export type DocumentedRoute = {
  method: string
  /** As the router spells it. */
  url: string
  schema: FastifySchema & { operationId: string }
  /** What the route requires of a key. */
  gate: Gate | undefined
  /** What a dashboard route requires of the member. Null: anyone can call it. */
  permission: Permission | null | undefined
  isBodyOptional: boolean
}
