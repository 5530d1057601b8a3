import { lookup, Resolver } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { BoundedOperations } from '../../../platform/object-store/bounded-operations.ts'
import type { DestinationRules } from './destination.ts'

export type ResolvedAddress = { address: string; family: number }

export type NameResolverOptions = {
  mode: DestinationRules['mode']
  /** Name servers, as `address:port`. By default those of the system. */
  servers?: readonly string[]
  lookupMsMax?: number
  lookupsMax?: number
  hostsFile?: string
  /** The resolver of the operating system, which blocks a thread. Only used in `any` mode. */
  systemLookup?: (hostname: string) => Promise<ResolvedAddress[]>
}

/** Equal to the connector's connect timeout. */
const LOOKUP_MS_MAX = 5_000
/**
 * Above the dispatcher's limit on deliveries, which is the effective limit: a company gets at most a quarter
 * of them. Each lookup uses a socket and about 20 kB of memory.
 */
const LOOKUPS_MAX = 4_096
/** Resends a lost packet after 1, 2 and 4 seconds, and tries the servers in turn. */
const QUERY_OPTIONS = { timeout: 1_000, tries: 4 } as const

/** libuv uses at most eight threads for host names if `UV_THREADPOOL_SIZE` is 16. */
const THREADS_MAX = 2
/** One per process, like the threads. */
const systemLookups = new BoundedOperations({ runningMax: THREADS_MAX, late: timeoutError })

/**
 * Resolves the names of receivers. It sends the DNS queries itself (c-ares), because `dns.lookup` blocks
 * a thread for as long as the name server doesn't answer, and the database and the archive need the same
 * threads. Callers that ask for the same name at the same time share one lookup. Nothing is cached.
 *
 * In `public` mode only DNS counts: a public name needs neither the hosts file nor a search domain. In
 * `any` mode the hosts file comes first, and the operating system is asked about names that DNS doesn't
 * know, so that names such as `receiver` or `receiver.namespace` work. Those lookups take at most
 * two threads in the whole process, even if their name servers hang.
 */
export class NameResolver implements Disposable {
  readonly #options: Required<Omit<NameResolverOptions, 'servers'>> & {
    servers: readonly string[] | null
  }
  readonly #lookups = new Map<string, Promise<ResolvedAddress[]>>()
  readonly #stop = new AbortController()

  constructor({
    mode,
    servers,
    lookupMsMax = LOOKUP_MS_MAX,
    lookupsMax = LOOKUPS_MAX,
    hostsFile = '/etc/hosts',
    systemLookup = lookupInSystem,
  }: NameResolverOptions) {
    const given = servers ?? null
    this.#options = { mode, servers: given, lookupMsMax, lookupsMax, hostsFile, systemLookup }
  }

  /** Names that are being looked up. */
  get lookupCount(): number {
    return this.#lookups.size
  }

  async resolve(hostname: string): Promise<readonly ResolvedAddress[]> {
    this.#stop.signal.throwIfAborted()
    const running = this.#lookups.get(hostname)
    if (running) return await running
    if (this.#lookups.size >= this.#options.lookupsMax) {
      throw errorWithCode('EBUSY', 'Too many names are being resolved.')
    }
    const lookup = this.#lookUpInTime(hostname).finally(() => this.#lookups.delete(hostname))
    this.#lookups.set(hostname, lookup)
    return await lookup
  }

  async #lookUpInTime(hostname: string): Promise<ResolvedAddress[]> {
    const deadline = new AbortController()
    const onStop = (): void => deadline.abort(this.#stop.signal.reason)
    const timer = setTimeout(() => deadline.abort(timeoutError()), this.#options.lookupMsMax)
    this.#stop.signal.addEventListener('abort', onStop)
    try {
      return await this.#lookUp(hostname, deadline.signal)
    } finally {
      clearTimeout(timer)
      this.#stop.signal.removeEventListener('abort', onStop)
    }
  }

  async #lookUp(hostname: string, signal: AbortSignal): Promise<ResolvedAddress[]> {
    const { mode, servers, hostsFile } = this.#options
    if (mode === 'public') return await queryServers(hostname, { servers, signal })
    const listed = findHost(await readHosts(hostsFile), hostname)
    if (listed.length > 0) return listed
    // DNS can't resolve a name without a domain, and `localhost` must not be sent to name servers.
    if (!isLocalName(hostname)) {
      const found = await queryServers(hostname, { servers, signal }).catch(() => [])
      if (found.length > 0) return found
    }
    const { systemLookup, lookupMsMax: timeoutMs } = this.#options
    // A name whose server hangs gets no thread: the signal is aborted by then, and `run` throws.
    return await systemLookups.run(() => systemLookup(hostname), { timeoutMs, signal })
  }

  /** Ends every lookup. A thread blocked by the operating system continues, but nothing waits for it. */
  [Symbol.dispose](): void {
    this.#stop.abort(errorWithCode('ECANCELLED', 'The service is stopping.'))
  }
}

/** Whether the name servers didn't answer, as opposed to answering that there is no address. */
export function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ETIMEOUT'
}

/**
 * Returns the addresses from DNS, alternating IPv4 and IPv6, so that the few that are tried include both. One
 * family is enough. Uses one resolver per lookup, which can be canceled separately and reads the system's
 * current name servers.
 */
async function queryServers(
  hostname: string,
  { servers, signal }: { servers: readonly string[] | null; signal: AbortSignal },
): Promise<ResolvedAddress[]> {
  signal.throwIfAborted()
  const resolver = new Resolver(QUERY_OPTIONS)
  if (servers) resolver.setServers(servers)
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const answers = await Promise.allSettled([
      resolver.resolve4(hostname),
      resolver.resolve6(hostname),
    ])
    signal.throwIfAborted()
    return addressesOf(answers)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

function addressesOf(answers: readonly PromiseSettledResult<string[]>[]): ResolvedAddress[] {
  const families = answers.flatMap((answer) =>
    answer.status === 'fulfilled' ? [answer.value] : [],
  )
  if (families.length === 0) {
    const errors = answers.flatMap((answer) => (answer.status === 'rejected' ? answer.reason : []))
    const error = errors.find((reason) => reason.code !== 'ENODATA')
    if (error) throw error
  }
  const longest = Math.max(0, ...families.map((addresses) => addresses.length))
  return Array.from({ length: longest }, (_, nth) =>
    families.flatMap((addresses) => addresses.slice(nth, nth + 1)),
  )
    .flat()
    .map(toResolved)
}

async function readHosts(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}

/** Entries of a hosts file: an address, then its names; `#` starts a comment. */
function findHost(hosts: string, hostname: string): ResolvedAddress[] {
  const name = withoutDot(hostname)
  if (!hosts.toLowerCase().includes(name)) return []
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    return names.includes(name) && isIP(address) !== 0 ? [toResolved(address)] : []
  })
}

function isLocalName(hostname: string): boolean {
  const name = withoutDot(hostname)
  return !name.includes('.') || name.endsWith('.localhost')
}

/** A trailing dot marks a fully qualified name. It is the same name without it. */
function withoutDot(hostname: string): string {
  return hostname.toLowerCase().replace(/\.$/, '')
}

function toResolved(address: string): ResolvedAddress {
  return { address, family: isIP(address) }
}

function lookupInSystem(hostname: string): Promise<ResolvedAddress[]> {
  return lookup(hostname, { all: true, order: 'verbatim' })
}

function timeoutError(): Error {
  return errorWithCode('ETIMEOUT', 'The name servers did not respond in time.')
}

function errorWithCode(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
