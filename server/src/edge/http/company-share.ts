import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import { companyOf } from './request-slots.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if requests of the route can last for half a minute or longer: they wait for events, or stream. */
    isLongRunning?: boolean
  }
}

/** They have separate shares, so that a company that follows its log can still send events and revoke a key. */
type RequestKind = 'long' | 'key' | 'member'

/**
 * Limits how many connections a company can use for requests in progress, because `OpenConnections` closes none
 * of these for a new one. Of each kind, a company can have half as many as there are connections that no company
 * uses. So one kind gets at most a third of all connections, and the three kinds of a company three fifths. With
 * more companies, each gets less, so several can't use all connections either.
 *
 * Counts requests, not connections: a client that pipelines uses up its share sooner.
 */
export class CompanyShares {
  readonly #connectionsMax: number
  readonly #counts: Readonly<Record<RequestKind, Map<string, number>>> = {
    long: new Map(),
    key: new Map(),
    member: new Map(),
  }
  #total = 0

  constructor({ connectionsMax }: { connectionsMax: number }) {
    this.#connectionsMax = connectionsMax
  }

  /** Counts a request until the returned function is called. Null if the company has too many. */
  take(companyId: string, kind: RequestKind): (() => void) | null {
    const counts = this.#counts[kind]
    const count = (counts.get(companyId) ?? 0) + 1
    // One is always possible, because its connection is already open.
    if (count > 1 && count > (this.#connectionsMax - this.#total) / 2) return null
    counts.set(companyId, count)
    this.#total += 1
    return () => {
      this.#total -= 1
      const left = (counts.get(companyId) ?? 0) - 1
      if (left === 0) counts.delete(companyId)
      else counts.set(companyId, left)
    }
  }
}

/** Refuses requests of a company that has too many in progress, before their handlers run. */
export function limitCompanies(app: FastifyInstance, shares: CompanyShares): void {
  app.addHook('preValidation', (request, { raw }, done) => {
    const companyId = companyOf(request)
    // A client that disconnected holds no connection, and `close` was already emitted.
    if (companyId === null || raw.destroyed) return done()
    const release = shares.take(companyId, kindOf(request))
    if (!release) return done(tooManyRequests())
    raw.once('close', release)
    done()
  })
}

function kindOf({ routeOptions, viewer }: FastifyRequest): RequestKind {
  if (routeOptions.config.isLongRunning === true) return 'long'
  return viewer ? 'member' : 'key'
}

function tooManyRequests(): ApiError {
  return new ApiError('overloaded', {
    message:
      'Too many requests from this company are in progress. Retry after the delay in the Retry-After header.',
  })
}
