import { isIP, type Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { buildConnector } from 'undici'
import { openLimitedSocket, type ResponseLimit } from '../../../platform/outbound/limited-socket.ts'
import type { ErrorClass } from '../delivery/delivery.ts'
import { type DestinationRules, destinationFault } from './destination.ts'
import { isTimeout, type ResolvedAddress } from './name-resolver.ts'
import { isPublicAddress } from './public-address.ts'

export const CONNECT_TIMEOUT_MS = 5_000
/** For one response including its overhead: TLS, informational responses, headers, chunks. */
export const RESPONSE_BYTES_MAX = 128 * 1_024

/** All addresses of a name are checked, but at most this many are tried. */
const ADDRESSES_TRIED_MAX = 4
const KEEP_ALIVE_DELAY_MS = 60_000
const RESPONSE_LIMIT: ResponseLimit = {
  bytesMax: RESPONSE_BYTES_MAX,
  errorFor: (sent) =>
    Object.assign(new Error(`The receiver sent ${sent}.`), { errorClass: 'reset' }),
}

/** One address to connect to. `tls` is null for http. `servername` is null if the host is an address. */
export type ConnectTarget = {
  address: string
  port: number
  tls: { servername: string | null; ca: string | undefined } | null
}

export type ConnectorOptions = {
  rules: DestinationRules
  resolve: (hostname: string) => Promise<readonly ResolvedAddress[]>
  dial?: (target: ConnectTarget) => Socket
  /** For resolving, connecting and the TLS handshake together. */
  connectTimeoutMs?: number
  /** Trusted instead of Node's default certificate authorities. */
  ca?: string
}

/** Why connecting failed. The message is for users: it names the host, but never an address of it. */
export class ConnectError extends Error {
  override name = 'ConnectError'
  readonly errorClass: Extract<
    ErrorClass,
    'dns' | 'connect' | 'tls' | 'timeout' | 'blocked_address'
  >

  constructor(errorClass: ConnectError['errorClass'], message: string, cause?: unknown) {
    super(message, { cause })
    this.errorClass = errorClass
  }
}

type Connector = Required<Omit<ConnectorOptions, 'ca'>> & { ca: string | undefined }

/**
 * The `connect` function of the undici pools that send webhooks. It resolves a name once per connection and
 * connects to exactly the addresses it checked, so a second lookup can't return different ones. A single
 * address that is not public blocks the whole name. It checks the URL rules again, so that stricter rules
 * apply to existing webhooks too.
 *
 * It uses only undici's protocol, host and port options: a socket path, another socket or a server name from
 * a header would bypass the check.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const connector: Connector = {
    dial: connectToAddress,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    ca: undefined,
    ...options,
  }
  return (destination, callback) => {
    void connectWithCallback(connector, destination, callback)
  }
}

async function connectWithCallback(
  connector: Connector,
  destination: buildConnector.Options,
  callback: buildConnector.Callback,
): Promise<void> {
  let socket
  try {
    socket = await connect(connector, destination)
  } catch (error) {
    return callback(asConnectError(error, destination.hostname), null)
  }
  callback(null, socket)
  // Only now that undici listens: before, a socket error would end the process.
  socket.off('error', ignoreError)
}

async function connect(connector: Connector, destination: buildConnector.Options): Promise<Socket> {
  const { hostname, protocol, port } = destination
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname
  const fault = destinationFault(`${protocol}//${host}${port ? `:${port}` : ''}`, connector.rules)
  if (fault) throw new ConnectError('blocked_address', `${hostname} is refused: it ${fault}`)

  const deadline = new AbortController()
  const onTimeout = (): void => deadline.abort(timeoutError(hostname))
  const timer = setTimeout(onTimeout, connector.connectTimeoutMs)
  try {
    const addresses = await beforeDeadline(checkedAddresses(connector, hostname), deadline.signal)
    return await connectInOrder(connector, addresses, destination, deadline.signal)
  } finally {
    clearTimeout(timer)
  }
}

async function checkedAddresses(connector: Connector, hostname: string): Promise<string[]> {
  const addresses = isIP(hostname) === 0 ? await resolveWith(connector, hostname) : [hostname]
  const refused = addresses.find((address) => !mayReach(connector, address))
  if (refused !== undefined) {
    // Only the cause has the address: the webhook's owner must not learn about our internal network.
    const cause = new Error(`${hostname} has the address ${refused}`)
    const message = `${hostname} resolves to an address that is not public`
    throw new ConnectError('blocked_address', message, cause)
  }
  return addresses
}

async function resolveWith({ resolve }: Connector, hostname: string): Promise<string[]> {
  const answers = await resolve(hostname).catch((error: unknown) => {
    if (isTimeout(error)) throw timeoutError(hostname)
    throw new ConnectError('dns', `${hostname} could not be resolved${codeOf(error)}`, error)
  })
  if (answers.length === 0) throw new ConnectError('dns', `${hostname} has no address`)
  return answers.map(({ address }) => address)
}

function mayReach({ rules }: Connector, address: string): boolean {
  return rules.mode === 'any' || isPublicAddress(address)
}

/**
 * Connects to the first address that answers. If an address refuses or doesn't answer, it tries the next,
 * but not after a failed handshake, because the receiver was reached. If none answers, it reports the first
 * error, which is that of an IPv4 address: many machines have no route to IPv6 addresses.
 */
async function connectInOrder(
  connector: Connector,
  addresses: readonly string[],
  { hostname, protocol, port }: buildConnector.Options,
  deadline: AbortSignal,
): Promise<Socket> {
  const servername = isIP(hostname) === 0 ? hostname.replace(/\.$/, '') : null
  const tls = protocol === 'https:' ? { servername, ca: connector.ca } : null
  const tried = addresses.slice(0, ADDRESSES_TRIED_MAX)
  // An address that drops our packets must leave time for the next. Once connected, the handshake gets
  // the remaining time.
  const connectMsMax = connector.connectTimeoutMs / tried.length
  let first: unknown
  for (const address of tried) {
    const target = { address, port: Number(port || (tls ? 443 : 80)), tls }
    try {
      return await openSocket(connector, { target, hostname, connectMsMax, deadline })
    } catch (error) {
      const { errorClass } = asConnectError(error, hostname)
      const isFinal = errorClass === 'tls' || errorClass === 'blocked_address'
      if (isFinal || deadline.aborted) throw error
      first ??= error
    }
  }
  throw first
}

type Attempt = {
  target: ConnectTarget
  hostname: string
  connectMsMax: number
  deadline: AbortSignal
}

/** Returns a socket with an allowed peer and a completed handshake. Destroys any other socket. */
function openSocket(
  connector: Connector,
  { target, hostname, connectMsMax, deadline }: Attempt,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    let stage: 'connect' | 'tls' = 'connect'
    const socket = connector.dial(target)
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_DELAY_MS).on('error', ignoreError)

    const onConnect = (): void => {
      clearTimeout(timer)
      const peer = socket.remoteAddress
      // The peer has already disconnected.
      if (peer === undefined) onFailure()
      else if (!mayReach(connector, peer)) {
        const message = `${hostname} connected to an address that is not public`
        settle(new ConnectError('blocked_address', message, new Error(`connected to ${peer}`)))
      } else if (target.tls) stage = 'tls'
      else settle()
    }
    const onSecure = (): void => settle()
    const onFailure = (error?: unknown): void =>
      settle(
        new ConnectError(stage, `${FAILURES[stage]} ${hostname} failed${codeOf(error)}`, error),
      )
    const onClose = (): void => onFailure()
    const onTimeout = (): void => settle(timeoutError(hostname))
    const timer = setTimeout(onTimeout, connectMsMax)

    function settle(failure?: ConnectError): void {
      clearTimeout(timer)
      deadline.removeEventListener('abort', onTimeout)
      socket.off('connect', onConnect).off('secureConnect', onSecure)
      socket.off('error', onFailure).off('close', onClose)
      if (!failure) return resolve(socket)
      socket.destroy()
      reject(failure)
    }

    deadline.addEventListener('abort', onTimeout)
    socket.on('connect', onConnect).on('secureConnect', onSecure)
    socket.on('error', onFailure).on('close', onClose)
  })
}

const FAILURES = { connect: 'The connection to', tls: 'The TLS handshake with' } as const

/** Returns the result of the work, or throws at the deadline and drops the result. */
async function beforeDeadline<T>(work: Promise<T>, deadline: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => reject(deadline.reason)
  deadline.addEventListener('abort', onAbort)
  try {
    return await Promise.race([work, promise])
  } finally {
    deadline.removeEventListener('abort', onAbort)
  }
}

function timeoutError(hostname: string): ConnectError {
  return new ConnectError('timeout', `${hostname} did not respond in time`)
}

function asConnectError(error: unknown, hostname: string): ConnectError {
  if (error instanceof ConnectError) return error
  return new ConnectError('connect', `${FAILURES.connect} ${hostname} failed`, error)
}

/** Only the code: Node's messages contain addresses, and those of TLS contain text from the receiver. */
function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? `: ${String(error.code)}` : ''
}

function ignoreError(): void {}

function connectToAddress({ address, port, tls }: ConnectTarget): Socket {
  return openLimitedSocket({ host: address, port, tls: tls && tlsOptions(tls) }, RESPONSE_LIMIT)
}

function tlsOptions({ servername, ca }: NonNullable<ConnectTarget['tls']>): ConnectionOptions {
  return {
    // Node's default, but explicit, so that NODE_TLS_REJECT_UNAUTHORIZED can't switch it off.
    rejectUnauthorized: true,
    ...(servername === null ? {} : { servername }),
    ...(ca === undefined ? {} : { ca }),
  }
}
