import { ApiError } from '../../../errors.ts'
import type { Logger } from '../../../platform/logger.ts'
import { OidcError } from '../../../platform/oidc/oidc-error.ts'
import type * as ProtocolModule from '../../../platform/oidc/protocol.ts'
import type {
  ProviderKeys,
  OidcSettings,
  ProviderMetadata,
  ProviderPerson,
  SignInSecrets,
} from '../../../platform/oidc/protocol.ts'
import { RepeatedWarning } from '../../../platform/repeated-warning.ts'
import { FairSemaphore, QueueFullError } from '../../../platform/scheduling/fair-semaphore.ts'
import type { MonotonicClock } from '../../../platform/time/clock.ts'
import { HOUR_MS } from '../../../platform/time/time-units.ts'
import { siteOf } from '../client-address.ts'
import { TokenBuckets } from '../token-bucket.ts'

/** For all requests to the provider that one sign-in needs. */
const OPERATION_MS_MAX = 8_000
const METADATA_LIFE_MS = HOUR_MS
/** If the metadata can't be read again, the old metadata is used for this long. */
const METADATA_STALE_MS_MAX = 24 * HOUR_MS
/** After a failure, the provider isn't asked for its metadata for this long. */
const METADATA_PAUSE_MS = 5_000
/** Tokens with an unknown key make this node read the keys at most this often. */
const KEYS_PAUSE_MS = 10_000
/**
 * Sign-ins that return from the provider, per node, without those from networks that have signed in before. A stranger
 * can cause these without an account.
 */
const RETURNS = { perSecond: 10, capacity: 100, cost: 1 } as const
/** How many of these can come from one site, so that one site can't use up all of them. */
const SITE_RETURNS = { perSecond: 1, capacity: 50, cost: 1 } as const
const SITES_MAX = 10_000
/** How many wait for the provider at once, in total and per site. */
const EXCHANGES = {
  permitsMax: 16,
  permitsPerCompanyMax: 4,
  waitingMax: 100,
  waitingPerCompanyMax: 20,
  waitMsMax: 5_000,
} as const

type Protocol = typeof ProtocolModule

/**
 * The identity provider of the operator. It may be down, slow or dishonest, and strangers can start sign-ins, so
 * every request to it has a deadline and a maximum size, what it says about itself is cached, and the number of
 * requests is bounded.
 */
export class IdentityProvider {
  /** Identifies the provider in the database. A trailing slash is removed, so it makes no difference. */
  readonly issuer: string
  /** What members call it. */
  readonly name: string
  readonly #settings: OidcSettings
  readonly #monotonic: MonotonicClock
  readonly #logger: Logger
  readonly #hasRateLimits: boolean
  readonly #operationMsMax: number
  readonly #failures = new RepeatedWarning('oidc.failed', 60_000)
  readonly #exchanges = new FairSemaphore(EXCHANGES)
  readonly #returns: TokenBuckets
  readonly #siteReturns: TokenBuckets
  #protocol: Promise<Protocol> | null = null
  #metadata: { value: ProviderMetadata; readAtMs: number } | null = null
  #reading: Promise<ProviderMetadata> | null = null
  #metadataFailedAtMs = Number.NEGATIVE_INFINITY
  #keys: ProviderKeys = {}
  #keysRenewedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: {
    settings: OidcSettings
    name: string
    monotonic: MonotonicClock
    logger: Logger
    hasRateLimits: boolean
    operationMsMax?: number
  }) {
    this.#settings = options.settings
    this.issuer = options.settings.issuer.replace(/\/+$/, '')
    this.name = options.name
    this.#monotonic = options.monotonic
    this.#logger = options.logger
    this.#hasRateLimits = options.hasRateLimits
    this.#operationMsMax = options.operationMsMax ?? OPERATION_MS_MAX
    this.#returns = new TokenBuckets({ clock: options.monotonic, bucketsMax: 1 })
    this.#siteReturns = new TokenBuckets({ clock: options.monotonic, bucketsMax: SITES_MAX })
  }

  /** Where the browser goes to sign in, and the secrets that check its return. Throws `OidcError`. */
  async start(): Promise<{ url: string; secrets: SignInSecrets }> {
    return await this.#reported(async (protocol, signal) => {
      const metadata = await this.#readMetadata(protocol, signal)
      const secrets = protocol.newSignInSecrets()
      return { url: await protocol.authorizationUrl(this.#settings, metadata, secrets), secrets }
    })
  }

  /** The person who signed in. Throws `OidcError`, or `overloaded` if too many sign-ins return at once. */
  async identify(
    parameters: URLSearchParams,
    secrets: SignInSecrets,
    { address, isKnown }: { address: string; isKnown: boolean },
  ): Promise<ProviderPerson> {
    // The provider refused it, so it isn't asked anything.
    const isCheap = parameters.has('error')
    const isAllowed =
      this.#siteReturns.take(siteOf(address), SITE_RETURNS).isAllowed &&
      (isKnown || isCheap || this.#returns.take('all', RETURNS).isAllowed)
    if (this.#hasRateLimits && !isAllowed) throw new ApiError('overloaded')
    using _permit = await this.#takePermit(address)
    return await this.#reported(async (protocol, signal) => {
      const metadata = await this.#readMetadata(protocol, signal)
      const settings = this.#settings
      const renewKeys = () => this.#renewKeys()
      const keys = this.#keys
      const exchange = { settings, metadata, parameters, secrets, keys, renewKeys, signal }
      return await protocol.exchangeCode(exchange)
    })
  }

  async #takePermit(address: string): Promise<Disposable> {
    try {
      return await this.#exchanges.take(siteOf(address))
    } catch (error) {
      if (error instanceof QueueFullError) throw new ApiError('overloaded', { cause: error })
      throw error
    }
  }

  async #reported<T>(work: (protocol: Protocol, signal: AbortSignal) => Promise<T>): Promise<T> {
    // Loaded on demand, because most installations have no identity provider.
    this.#protocol ??= import('../../../platform/oidc/protocol.ts')
    const protocol = await this.#protocol
    try {
      return await work(protocol, AbortSignal.timeout(this.#operationMsMax))
    } catch (error) {
      if (!(error instanceof OidcError)) throw error
      const { failure, message } = error
      if (failure !== 'denied') this.#failures.warn(this.#logger, { failure, reason: message })
      throw error
    }
  }

  async #readMetadata(protocol: Protocol, signal: AbortSignal): Promise<ProviderMetadata> {
    const nowMs = this.#monotonic()
    const known = this.#metadata
    if (known && nowMs - known.readAtMs < METADATA_LIFE_MS) return known.value
    const stale = known && nowMs - known.readAtMs < METADATA_STALE_MS_MAX ? known.value : null
    if (!this.#reading && nowMs - this.#metadataFailedAtMs < METADATA_PAUSE_MS) {
      if (stale) return stale
      throw new OidcError('unavailable', 'the last attempt to read the metadata failed')
    }
    try {
      // Callers that arrive meanwhile share one request.
      this.#reading ??= this.#discover(protocol, signal)
      return await this.#reading
    } catch (error) {
      if (stale) return stale
      throw error
    }
  }

  async #discover(protocol: Protocol, signal: AbortSignal): Promise<ProviderMetadata> {
    try {
      const value = await protocol.discover(this.#settings, signal)
      this.#metadata = { value, readAtMs: this.#monotonic() }
      return value
    } catch (error) {
      this.#metadataFailedAtMs = this.#monotonic()
      throw error
    } finally {
      this.#reading = null
    }
  }

  #renewKeys(): ProviderKeys | null {
    const nowMs = this.#monotonic()
    if (nowMs - this.#keysRenewedAtMs < KEYS_PAUSE_MS) return null
    this.#keysRenewedAtMs = nowMs
    this.#keys = {}
    return this.#keys
  }
}
