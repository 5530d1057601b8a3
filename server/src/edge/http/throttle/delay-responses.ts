import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import { type MonotonicClock, monotonicClock } from '../../../platform/time/clock.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import type { DebtRate } from './caller-debts.ts'
import {
  ResponseThrottle,
  CHECK_RATE,
  COMPANY_RATE,
  KEY_REFUSAL_RATE,
  MEMBER_RATE,
  PAGE_RATE,
  REFUSAL_RATE,
} from './response-throttle.ts'
import { type ClientAddresses, siteOf } from '../../auth/client-address.ts'
import { areChunksTooSmall, REST_BYTES_MAX } from '../chunk-limit.ts'

/** Receiving this much takes as long as sending one response. */
const BYTES_PER_RESPONSE = 64 * 1_024

type Refused = { error: ApiError; request: FastifyRequest; reply: FastifyReply }

/** Calls `respond` once, immediately or later. */
export type DelayRefusal = (refused: Refused, respond: () => void) => void

export const respondImmediately: DelayRefusal = (_refused, respond) => respond()

/**
 * Delays responses in a flood: refusals, all responses to callers without a key or session, and all responses
 * to members. While it waits, a request uses neither a slot nor the body budget: members wait before
 * their requests are handled, the others after it.
 */
export class ResponseDelays implements Disposable {
  readonly #throttles = new DisposableStack()
  readonly #refusals: ResponseThrottle
  readonly #keyRefusals: ResponseThrottle
  readonly #pages: ResponseThrottle
  readonly #checks: ResponseThrottle
  readonly #members: ResponseThrottle
  readonly #companies: ResponseThrottle
  readonly #addresses: ClientAddresses
  readonly #hasRateLimits: boolean

  constructor({
    addresses,
    hasRateLimits,
    clock = monotonicClock,
  }: {
    addresses: ClientAddresses
    hasRateLimits: boolean
    clock?: MonotonicClock
  }) {
    const throttle = (rate: DebtRate) => this.#throttles.use(new ResponseThrottle(rate, clock))
    this.#refusals = throttle(REFUSAL_RATE)
    this.#keyRefusals = throttle(KEY_REFUSAL_RATE)
    this.#pages = throttle(PAGE_RATE)
    this.#checks = throttle(CHECK_RATE)
    this.#members = throttle(MEMBER_RATE)
    this.#companies = throttle(COMPANY_RATE)
    this.#addresses = addresses
    this.#hasRateLimits = hasRateLimits
  }

  /**
   * Waits while the member exceeds its rate, and then while the company does. In this order, a member's
   * flood uses only a part of the company's rate. Call it as soon as the member is known. A response that
   * waited instead could hold a slot, because many handlers wait until their response is sent.
   */
  async delayMember(
    { userId, companyId }: Pick<Viewer, 'userId' | 'companyId'>,
    response: ServerResponse,
  ): Promise<void> {
    if (!this.#hasRateLimits) return
    await pass(this.#members, userId, response)
    await pass(this.#companies, companyId, response)
    // The client disconnected, so there is nothing to do and no one to read this error.
    if (isGone(response)) throw new ApiError('overloaded')
  }

  /** Keys count toward their company, which can have many keys, and separately from anonymous callers. */
  delayRefusal: DelayRefusal = (refused, respond) => {
    const { request, reply } = refused
    const { key } = request
    if (!mayWait(refused)) respond()
    else if (key && !this.#hasRateLimits) respond()
    else if (key) hold(this.#keyRefusals, key.companyId, { request, reply, respond })
    else hold(this.#refusals, this.siteOf(request), { request, reply, respond })
  }

  /** Call it before the routes are registered. When the app closes, all delayed responses are sent. */
  delayAnonymous(app: FastifyInstance): void {
    app.addHook('onSend', (request, reply, _payload, done) => {
      const isRefusal = reply.statusCode >= 400
      if (request.key || request.viewer || isRefusal) return done()
      // Separate throttles, so that a flood of pages through a proxy doesn't delay its health checks.
      const throttle = isCheck(request) ? this.#checks : this.#pages
      hold(throttle, this.siteOf(request), { request, reply, respond: done })
    })
    app.addHook('preClose', (done) => {
      this[Symbol.dispose]()
      done()
    })
  }

  /** Ends all delays. */
  [Symbol.dispose](): void {
    this.#throttles.dispose()
  }

  /** Not the /64 as elsewhere: one attacker can have thousands of those, each with its own rate. */
  siteOf(request: Pick<FastifyRequest, 'socket' | 'headers'>): string {
    return siteOf(this.#addresses.of(request))
  }
}

/** Members have already waited (`delayMember`). Callers don't wait because the service failed. */
function mayWait({ error: { status, code }, request: { viewer } }: Refused): boolean {
  return !viewer && (status < 500 || code === 'overloaded')
}

function isCheck({ routeOptions: { url } }: FastifyRequest): boolean {
  return url === '/health' || url === '/ready'
}

/** Checks the socket, because only its first response is destroyed together with it. */
function isGone({ req: { socket } }: ServerResponse): boolean {
  return socket.destroyed
}

async function pass(
  throttle: ResponseThrottle,
  caller: string,
  response: ServerResponse,
): Promise<void> {
  if (isGone(response)) return
  await new Promise<void>((resolve) => throttle.hold(caller, response, resolve))
}

function hold(
  throttle: ResponseThrottle,
  caller: string,
  {
    request,
    reply,
    respond,
  }: { request: FastifyRequest; reply: FastifyReply; respond: () => void },
): void {
  if (isGone(reply.raw)) return respond()
  let hasResponded = false
  const respondOnce = () => {
    hasResponded = true
    respond()
  }
  const release = throttle.hold(caller, reply.raw, respondOnce, countOf(request))
  if (!request.raw.complete && !hasResponded) dropBody(request, reply, release)
}

/** The rest of a refused body is still received, so a large body counts as several responses. */
function countOf({ raw: { headers, complete } }: FastifyRequest): number {
  const isChunked = headers['transfer-encoding'] !== undefined && !complete
  const bytes = isChunked ? REST_BYTES_MAX : Number(headers['content-length'] ?? 0)
  return 1 + Math.floor(Math.min(bytes, REST_BYTES_MAX) / BYTES_PER_RESPONSE)
}

/**
 * Drops the body while its response waits, up to a limit. Tiny chunks end the delay, because they cost too
 * much.
 */
function dropBody({ raw }: FastifyRequest, reply: FastifyReply, release: () => void): void {
  const isChunked = raw.headers['transfer-encoding'] !== undefined
  let chunks = 0
  let bytes = 0
  const onData = (chunk: Buffer) => {
    chunks += 1
    bytes += chunk.length
    if (isChunked && areChunksTooSmall(chunks, bytes)) release()
    if (bytes > REST_BYTES_MAX) raw.pause()
  }
  raw.on('data', onData)
  // From then on, the connection counts the rest.
  reply.raw.once('finish', () => raw.off('data', onData))
  raw.resume()
}
