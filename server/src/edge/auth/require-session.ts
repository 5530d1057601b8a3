import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Clock, MonotonicClock } from '../../platform/time/clock.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { noteActivity } from '../../platform/scheduling/time-slice.ts'
import { isAddressAllowed } from '../../tenancy/allowlist.ts'
import { isAllowed, type Permission, POLICY } from '../../tenancy/policy.ts'
import { hasRecentUse, listViewers, updateLastUse } from '../../tenancy/sign-in/session-store.ts'
import { canSeeAll, type Viewer } from '../../tenancy/viewer.ts'
import { markAuthenticated } from '../http/authenticated-connections.ts'
import type { ResponseDelays } from '../http/throttle/delay-responses.ts'
import type { ClientAddresses } from './client-address.ts'
import { KnownSessions } from './known-sessions.ts'
import type { Hook } from './require-key.ts'
import { refuseCrossSite } from './same-site.ts'
import { SessionCookie } from './session-cookie.ts'
import { SessionReader } from './session-reader.ts'
import { UnknownCredentials } from './unknown-credentials.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `requireMember`, so it is present in every route that requires a session. */
    viewer: Viewer
  }
}

export class SessionGuard {
  readonly cookie: SessionCookie
  readonly #sessions: SessionReader
  readonly #addresses: ClientAddresses
  readonly #delays: Pick<ResponseDelays, 'delayMember'>
  readonly #publicOrigin: string | null
  readonly #known: KnownSessions
  readonly #unknown: UnknownCredentials

  constructor(options: {
    db: Queryable
    clock: Clock
    monotonic: MonotonicClock
    addresses: ClientAddresses
    delays: Pick<ResponseDelays, 'delayMember'>
    hasRateLimits: boolean
    publicUrl: string | null
    /** Multiplies the timeouts. */
    timeoutFactor: number
  }) {
    const { db, clock, timeoutFactor } = options
    this.#sessions = new SessionReader(
      {
        list: (tokens) => listViewers(db, tokens, clock()),
        hasRecentUse: (viewer) => hasRecentUse(viewer, clock()),
        noteUse: (viewer) => updateLastUse(db, viewer, clock()),
      },
      timeoutFactor,
    )
    this.#addresses = options.addresses
    this.#delays = options.delays
    this.#publicOrigin = options.publicUrl === null ? null : new URL(options.publicUrl).origin
    this.#known = new KnownSessions(options.monotonic)
    this.#unknown = new UnknownCredentials({
      clock: options.monotonic,
      hasRateLimits: options.hasRateLimits,
      timeoutFactor,
    })
    this.cookie = new SessionCookie({
      isSecure: this.#publicOrigin?.startsWith('https:') === true,
    })
  }

  /**
   * Checks, in this order: a valid session, a request from our own pages, an address that the company allows,
   * the second factor if the company requires one, and a role with the permission.
   */
  requireMember(permission: Permission): Hook {
    return async (request, reply) => {
      request.clientAddress = this.#addresses.of(request)
      const viewer = await this.#viewerOf(request)
      refuseCrossSite(request, this.#publicOrigin)
      request.viewer = viewer
      markAuthenticated(request.raw.socket)
      await this.#delays.delayMember(viewer, reply.raw)
      noteActivity(viewer.companyId)
      refuseViewer(viewer, permission, request.clientAddress)
    }
  }

  /** Checks the session of a request again if its body took long to arrive. */
  async recheck(request: FastifyRequest): Promise<void> {
    const { permission } = request.routeOptions.config
    if (!permission) return
    request.viewer = await this.#viewerOf(request)
    refuseViewer(request.viewer, permission, request.clientAddress)
  }

  /** Like `recheck`, before data is sent: the member must still see every workspace they saw before. */
  async recheckRead(request: FastifyRequest): Promise<void> {
    const { viewer } = request
    await this.recheck(request)
    if (canSeeAll(request.viewer, viewer)) return
    throw new ApiError('insufficient_role', {
      message: 'Your access changed during this request. Send it again.',
    })
  }

  async #viewerOf({ headers, clientAddress: address }: FastifyRequest): Promise<Viewer> {
    const token = this.cookie.read(headers.cookie)
    if (token === null) throw new ApiError('not_signed_in')
    const read = () => this.#sessions.find(token)
    const isKnown = this.#known.has(token)
    const viewer = isKnown ? await read() : await this.#unknown.lookUp(address, read)
    this.#known.note(token, viewer !== null)
    if (viewer) return viewer
    const refusal = new ApiError('not_signed_in')
    this.#unknown.countFailure(address, refusal)
    throw refusal
  }

  /** For the few dashboard routes that need no session. */
  requireSameSite: Hook = async (request) => {
    request.clientAddress = this.#addresses.of(request)
    refuseCrossSite(request, this.#publicOrigin)
  }
}

/** For every use of a session, also long after it was opened. */
export function refuseViewer(viewer: Viewer, permission: Permission, address: string): void {
  refuseAddress(address, viewer.allowedRanges)
  if (viewer.needsSecondFactor && permission !== 'self.enroll') {
    throw new ApiError('second_factor_required')
  }
  refuseRole(viewer, permission)
}

/** Also for new sessions. If `allowedRanges` is null, every address is allowed. */
export function refuseAddress(address: string, allowedRanges: readonly string[] | null): void {
  if (isAddressAllowed(address, allowedRanges)) return
  throw new ApiError('ip_not_allowed', {
    message: `Your company allows its dashboard only from certain addresses. Yours, ${address}, is not one of them. Use another network, or ask an owner or admin to add it to the allowlist.`,
  })
}

/** For routes whose permission depends on the request. */
export function refuseRole({ role }: Pick<Viewer, 'role'>, permission: Permission): void {
  if (isAllowed(role, permission)) return
  throw new ApiError('insufficient_role', {
    message: `Your role is ${role}. This requires the role ${POLICY[permission].join(' or ')}.`,
  })
}
