import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../errors.ts'
import { ANONYMOUS_RATE, AnswerThrottle, REFUSAL_RATE } from './answer-throttle.ts'
import { type ClientAddresses, networkOf } from './auth/client-address.ts'
import { areChunksTooSmall } from './chunk-limit.ts'

type Refused = { error: ApiError; request: FastifyRequest; reply: FastifyReply }

/** Calls `answer` once, now or later. */
export type DelayRefusal = (refused: Refused, answer: () => void) => void

export const answerImmediately: DelayRefusal = (_refused, answer) => answer()

/**
 * Delays answers in a flood: refusals, and all answers to callers without a key or session. The request
 * has left its handler by then, so it uses neither a slot nor the body budget while it waits.
 */
export class AnswerDelays {
  readonly #refusals: AnswerThrottle
  readonly #anonymous: AnswerThrottle
  readonly #addresses: ClientAddresses

  /** `heldMax`: of refusals, and of other answers. */
  constructor({ heldMax, addresses }: { heldMax: number; addresses: ClientAddresses }) {
    this.#refusals = new AnswerThrottle({ rate: REFUSAL_RATE, heldMax })
    this.#anonymous = new AnswerThrottle({ rate: ANONYMOUS_RATE, heldMax })
    this.#addresses = addresses
  }

  delayRefusal: DelayRefusal = (refused, answer) => {
    const { request, reply } = refused
    const caller = this.#refusedCaller(refused)
    if (caller === null) answer()
    else hold(this.#refusals, caller, { request, reply, answer })
  }

  /** Call it before the routes are registered. When the app closes, all answers are sent. */
  delayAnonymous(app: FastifyInstance): void {
    app.addHook('onSend', (request, reply, _payload, done) => {
      const isRefusal = reply.statusCode >= 400
      if (request.key || request.viewer || isRefusal) return done()
      const caller = `${isCheck(request) ? 'checks' : 'pages'} ${this.#networkOf(request)}`
      hold(this.#anonymous, caller, { request, reply, answer: done })
    })
    app.addHook('preClose', (done) => {
      this.#refusals[Symbol.dispose]()
      this.#anonymous[Symbol.dispose]()
      done()
    })
  }

  /**
   * The caller that a refusal counts for, or null if it is never delayed. A valid key or session is delayed only
   * for exceeding a limit. Without one, the caller's network counts. A database that is unavailable is
   * not the caller's fault.
   */
  #refusedCaller({ error: { status, code }, request }: Refused): string | null {
    const { key, viewer } = request
    if (key) return code === 'rate_limited' ? `key ${key.id}` : null
    if (viewer) return code === 'rate_limited' ? `member ${viewer.userId}` : null
    if (status >= 500 && code !== 'overloaded') return null
    return `network ${this.#networkOf(request)}`
  }

  #networkOf(request: FastifyRequest): string {
    return networkOf(this.#addresses.of(request))
  }
}

/** A flood of pages through a proxy must not delay the health checks of that proxy. */
function isCheck({ routeOptions: { url } }: FastifyRequest): boolean {
  return url === '/health' || url === '/ready'
}

function hold(
  throttle: AnswerThrottle,
  caller: string,
  { request, reply, answer }: { request: FastifyRequest; reply: FastifyReply; answer: () => void },
): void {
  if (reply.raw.destroyed) return answer()
  let isAnswered = false
  const release = throttle.hold(caller, reply.raw, () => {
    isAnswered = true
    answer()
  })
  if (!request.raw.complete && !isAnswered) dropBody(request, release)
}

/** Keeps nothing of the body while its answer waits. Tiny chunks end the delay: they cost too much. */
function dropBody({ raw }: FastifyRequest, release: () => void): void {
  const isChunked = raw.headers['transfer-encoding'] !== undefined
  let chunks = 0
  let bytes = 0
  raw.on('data', (chunk: Buffer) => {
    chunks += 1
    bytes += chunk.length
    if (isChunked && areChunksTooSmall(chunks, bytes)) release()
  })
}
