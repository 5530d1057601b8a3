/**
 * A request without a response for this long causes a check, and a check without one shows the banner: together
 * less than three seconds after the member's action.
 */
const SILENT_MS_MAX = 1_200
const RETRY_MS = 1_200
/** How often a page that loads nothing checks. */
const IDLE_MS = 10_000
/** A late response still ends the outage. */
const CHECK_MS_MAX = 30_000

type Connection = {
  /** Since when the service hasn't responded. Null if it does. */
  lostAtMs: number | null
  /** The browser itself has no network. */
  isOffline: boolean
}

const CONNECTED: Connection = { lostAtMs: null, isOffline: false }

let connection = CONNECTED
let respondedAtMs = 0
let checking: Promise<void> | null = null
/** A request failed, instead of being merely slow. */
let hasFailed = false
const listeners = new Set<() => void>()
const reconnectListeners = new Set<() => void>()

/** For `useSyncExternalStore`. */
export function readConnection(): Connection {
  return connection
}

export function subscribeConnection(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls the listener once the service responds after requests have failed. */
export function onReconnect(listener: () => void): () => void {
  reconnectListeners.add(listener)
  return () => reconnectListeners.delete(listener)
}

export function isLost(): boolean {
  return connection.lostAtMs !== null
}

/** Call it for each response of the service. */
export function noteResponse(): void {
  respondedAtMs = Date.now()
  // A request can fail although the service responds. Its own retries are enough then.
  const isBack = hasFailed && isLost()
  hasFailed = false
  setConnection(CONNECTED)
  if (isBack) for (const listener of reconnectListeners) listener()
}

/** Call it when a request got no response. A single one can fail by chance, so this asks the service again. */
export function noteFailure(): void {
  hasFailed = true
  void checkConnection()
}

/** Waits for a request, and checks the connection if it takes long. */
export async function watchRequest<T>(request: Promise<T>): Promise<T> {
  const timer = setTimeout(() => void checkConnection(), SILENT_MS_MAX)
  try {
    return await request
  } finally {
    clearTimeout(timer)
  }
}

/** Checks regularly, while the page is visible, whether the service responds. */
export function watchConnection(): () => void {
  respondedAtMs ||= Date.now()
  const timer = setInterval(() => {
    const isQuiet = Date.now() - respondedAtMs >= (isLost() ? RETRY_MS : IDLE_MS)
    if (isQuiet && document.visibilityState === 'visible') void checkConnection()
  }, RETRY_MS)
  const onOffline = () => {
    hasFailed = true
    markLost()
  }
  const onOnline = () => void checkConnection()
  window.addEventListener('offline', onOffline)
  window.addEventListener('online', onOnline)
  if (!navigator.onLine) onOffline()
  return () => {
    clearInterval(timer)
    window.removeEventListener('offline', onOffline)
    window.removeEventListener('online', onOnline)
  }
}

/** Finds out whether the service responds. */
export function checkConnection(): Promise<void> {
  checking ??= requestHealth().finally(() => (checking = null))
  return checking
}

async function requestHealth(): Promise<void> {
  const timer = setTimeout(markLost, SILENT_MS_MAX)
  try {
    // Without the cookie, because a check must not extend the session.
    const signal = AbortSignal.timeout(CHECK_MS_MAX)
    const response = await fetch('/health', { cache: 'no-store', credentials: 'omit', signal })
    // The browser keeps a request open until its body is read.
    await response.text()
    // A proxy responds in place of a service that it can't reach.
    if (response.status >= 500) throw new Error('The service is unreachable.')
    noteResponse()
  } catch {
    hasFailed = true
    markLost()
  } finally {
    clearTimeout(timer)
  }
}

function markLost(): void {
  setConnection({
    lostAtMs: connection.lostAtMs ?? (respondedAtMs || Date.now()),
    isOffline: !navigator.onLine,
  })
}

function setConnection(next: Connection): void {
  const isSame = next.lostAtMs === connection.lostAtMs && next.isOffline === connection.isOffline
  if (isSame) return
  connection = next
  for (const listener of listeners) listener()
}
