/** Options of `new Annals(…)`. */
export type AnnalsOptions = {
  /** A workspace key or a company key, as the dashboard showed it. Throws if undefined. */
  apiKey: string | undefined
  /** The address of the service, such as `https://annals.example`. A `/v1` at its end is ignored. */
  baseUrl: string | URL
  /** How long one attempt may take, including its body. Default: 30 seconds. */
  timeoutMs?: number
  /** How many times a request is repeated after its first attempt. Default: 4. */
  retriesMax?: number
  /** If the service asks for a longer wait than this, the error is thrown at once. Default: a minute. */
  retryAfterMsMax?: number
  /** Replaces the global `fetch`, for a proxy or in tests. */
  fetch?: typeof fetch
  /** The current time in Unix milliseconds, for tests. */
  clock?: () => number
  /** A random number from 0 up to 1, for tests. */
  random?: () => number
  /** Waits this long, or until the signal aborts. For tests. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** Options of every call. */
export type CallOptions = {
  /** Aborts the call, including its retries. The call then throws the reason of the signal. */
  signal?: AbortSignal
  /** Overrides `timeoutMs` of the client for this call. */
  timeoutMs?: number
  /** Overrides `retriesMax` of the client for this call. */
  retriesMax?: number
}

/** Where and how a client sends its requests. */
export type Connection = Readonly<Required<Omit<AnnalsOptions, 'apiKey' | 'baseUrl'>>> & {
  readonly apiKey: string
  /** Without `/v1` or a slash at its end. */
  readonly baseUrl: string
}

const DEFAULTS = { timeoutMs: 30_000, retriesMax: 4, retryAfterMsMax: 60_000 } as const

/** Checks the options once, so that a missing variable fails at startup and not at the first event. */
export function createConnection(options: AnnalsOptions): Connection {
  const { apiKey } = options
  // A header can't contain other characters, and fetch would put the key into its error message.
  if (typeof apiKey !== 'string' || !/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new TypeError('apiKey is missing or contains spaces. Use a key from the dashboard.')
  }
  return Object.freeze({
    apiKey,
    baseUrl: parseBaseUrl(options.baseUrl),
    timeoutMs: options.timeoutMs ?? DEFAULTS.timeoutMs,
    retriesMax: options.retriesMax ?? DEFAULTS.retriesMax,
    retryAfterMsMax: options.retryAfterMsMax ?? DEFAULTS.retryAfterMsMax,
    // Some runtimes require that fetch is called on the global object.
    fetch: options.fetch ?? ((...args) => globalThis.fetch(...args)),
    clock: options.clock ?? systemClock,
    random: options.random ?? randomFraction,
    sleep: options.sleep ?? sleep,
  })
}

/** Many APIs have their version in the address, and the paths of requests start with `/v1` already. */
export function parseBaseUrl(baseUrl: string | URL): string {
  const text = String(baseUrl)
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new TypeError('baseUrl must be an address such as https://annals.example.')
  }
  const url = new URL(text)
  return url.origin + url.pathname.replace(/(\/v1)?\/*$/, '')
}

/** The time of the system in Unix milliseconds. */
export function systemClock(): number {
  return Date.now()
}

function randomFraction(): number {
  const [value = 0] = crypto.getRandomValues(new Uint32Array(1))
  return value / 2 ** 32
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
