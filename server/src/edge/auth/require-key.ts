import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Clock, MonotonicClock } from '../../platform/time/clock.ts'
import { noteActivity } from '../../platform/scheduling/time-slice.ts'
import { PLAN_TERMS } from '../../tenancy/plans.ts'
import type { Principal } from '../../tenancy/principal.ts'
import { markAuthenticated } from '../http/authenticated-connections.ts'
import { authenticate, principalOf } from './authenticate.ts'
import type { ClientAddresses } from './client-address.ts'
import { admit, type Gate } from './gate.ts'
import { recheckKey } from './key-access.ts'
import type { CachedKey, KeyCache } from './key-cache.ts'
import type { KeyUseRecorder } from './key-use-recorder.ts'
import { TokenBuckets, type RateVerdict } from './token-bucket.ts'
import { UnknownCredentials } from './unknown-credentials.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `requireKey`, so it is present in every route that requires a key. */
    principal: Principal
    key: CachedKey
    /** What the route requires of the key. */
    gate: Gate
    /** The caller's address, resolved through trusted proxies. */
    clientAddress: string
  }
}

/** Runs before the body is read. */
export type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

const KEYS_MAX = 50_000
const COMPANIES_MAX = 10_000
/** All keys of a company together get the rate of this many keys. */
const KEYS_AT_FULL_RATE = 10

export class KeyGuard {
  readonly #keyCache: KeyCache
  readonly #keyUse: KeyUseRecorder
  readonly #clock: Clock
  readonly #addresses: ClientAddresses
  readonly #hasRateLimits: boolean
  readonly #keyBuckets: TokenBuckets
  readonly #companyBuckets: TokenBuckets
  readonly #unknown: UnknownCredentials
  /** Tokens paid by requests that cost more than one. */
  readonly #paid = new WeakMap<FastifyRequest, number>()
  /** The path in the API contract by router path. Bounded, because the number of routes is fixed. */
  readonly #endpoints = new Map<string, string>()

  constructor(options: {
    keyCache: KeyCache
    keyUse: KeyUseRecorder
    clock: Clock
    monotonic: MonotonicClock
    addresses: ClientAddresses
    hasRateLimits: boolean
    /** Multiplies the timeouts. */
    timeoutFactor: number
  }) {
    this.#keyCache = options.keyCache
    this.#keyUse = options.keyUse
    this.#clock = options.clock
    this.#addresses = options.addresses
    this.#hasRateLimits = options.hasRateLimits
    const clock = options.monotonic
    const shared = { clock, collectsUse: options.hasRateLimits }
    this.#keyBuckets = new TokenBuckets({ ...shared, bucketsMax: KEYS_MAX })
    this.#companyBuckets = new TokenBuckets({ ...shared, bucketsMax: COMPANIES_MAX })
    this.#unknown = new UnknownCredentials({
      clock: options.monotonic,
      hasRateLimits: options.hasRateLimits,
      timeoutFactor: options.timeoutFactor,
    })
  }

  /** Of keys and of companies. Nodes share them. */
  get buckets(): readonly TokenBuckets[] {
    return [this.#keyBuckets, this.#companyBuckets]
  }

  /**
   * An `onRequest` hook, so that a body isn't read before its sender is authenticated. The order of the
   * checks is part of the API contract.
   */
  requireKey(gate: Gate): Hook {
    return async (request, reply) => {
      request.clientAddress = this.#addresses.of(request)
      const key = await this.#authenticate(request)
      markAuthenticated(request.raw.socket)
      request.key = key
      request.gate = gate
      request.principal = principalOf(key)
      noteActivity(key.companyId)
      const refusal = this.#take(request, reply, { cost: 1 })
      if (refusal) throw refusal
      admit(request.principal, request.clientAddress, gate)
    }
  }

  /** Checks the key of a request again if its body took long to arrive. */
  async recheck(request: FastifyRequest): Promise<void> {
    const key = await this.#keyCache.find(request.key.kid)
    const { clientAddress: address, gate } = request
    request.principal = recheckKey(key, { address, gate, nowMs: this.#clock() })
  }

  /**
   * Raises the cost of a request to `cost` tokens, of which `requireKey` has taken one. Returns a refusal if
   * there are not enough. Tokens that the request has already paid are not refunded.
   */
  charge(request: FastifyRequest, reply: FastifyReply, cost: number): ApiError | null {
    const paid = this.#paid.get(request) ?? 1
    if (cost <= paid) return null
    const refusal = this.#take(request, reply, { cost, paid })
    if (refusal === null) this.#paid.set(request, cost)
    return refusal
  }

  /** Called after the response, so that the key status route reports the use before its own call. */
  noteUse(request: FastifyRequest, reply: FastifyReply): void {
    if (!request.key) return
    this.#keyUse.note(request.key.id, {
      ip: request.clientAddress,
      endpoint: this.#endpointOf(request),
      hasFailed: reply.statusCode >= 400,
    })
  }

  #take(
    request: FastifyRequest,
    reply: FastifyReply,
    price: { cost: number; paid?: number },
  ): ApiError | null {
    const { plan, keyId, companyId } = request.principal
    const perSecond = PLAN_TERMS[plan].eventsPerSecondMax
    if (!this.#hasRateLimits || perSecond === null) return null
    const rate = { perSecond, capacity: perSecond }
    const refusal = report(reply, this.#keyBuckets.take(keyId, { ...rate, ...price }))
    if (refusal) return refusal
    const perCompany = perSecond * KEYS_AT_FULL_RATE
    const verdict = this.#companyBuckets.take(companyId, {
      perSecond: perCompany,
      capacity: perCompany,
      ...price,
    })
    if (verdict.isAllowed) return null
    // The company's limit refused the request, so refund the tokens taken from the key.
    const cost = price.cost - (price.paid ?? 0)
    this.#keyBuckets.refund(keyId, { ...rate, cost })
    return report(reply, verdict)
  }

  #endpointOf({ method, routeOptions: { url = '' } }: FastifyRequest): string {
    const known = this.#endpoints.get(url)
    if (known !== undefined) return `${method} ${known}`
    const path = pathInContract(url)
    this.#endpoints.set(url, path)
    return `${method} ${path}`
  }

  async #authenticate(request: FastifyRequest): Promise<CachedKey> {
    const { clientAddress: address } = request
    try {
      refuseSecondHeader(request)
      return await authenticate(request.headers.authorization, {
        keyCache: this.#keyCache,
        clock: this.#clock,
        lookUp: (read) => this.#unknown.lookUp(address, read),
      })
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        this.#unknown.countFailure(address, error)
      }
      throw error
    }
  }
}

/** Sets the rate limit headers, and returns the refusal if there is one. */
function report(reply: FastifyReply, verdict: RateVerdict): ApiError | null {
  reply.header('ratelimit-limit', verdict.limit)
  reply.header('ratelimit-remaining', verdict.remaining)
  reply.header('ratelimit-reset', verdict.resetSeconds)
  // A batch may need a full bucket, and its size is unknown until its body is read.
  const retryAfterSeconds = verdict.resetSeconds
  return verdict.isAllowed ? null : new ApiError('rate_limited', { retryAfterSeconds })
}

const AUTHORIZATION = 'authorization'

/**
 * Node keeps the first Authorization header and drops the others, but a proxy in front of us may have checked
 * a different one.
 */
function refuseSecondHeader({ raw }: FastifyRequest): void {
  let count = 0
  for (let index = 0; index < raw.rawHeaders.length; index += 2) {
    const name = raw.rawHeaders[index]
    if (name?.length === AUTHORIZATION.length && name.toLowerCase() === AUTHORIZATION) count += 1
  }
  if (count > 1) {
    throw new ApiError('invalid_api_key', {
      message: 'The Authorization header appears more than once. Send only one.',
    })
  }
}

/** Converts the router's `/v1/keys/:keyId/rotate` to the notation of the API contract. */
function pathInContract(url: string): string {
  return url.replaceAll(/:(\w+)/g, '{$1}')
}
