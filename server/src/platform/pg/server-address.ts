/** One PostgreSQL server. `options` are connection settings from the address. */
export type Server =
  | { connectionString: string; options?: string }
  | { host: string; port: number; user: string; password: string; database: string }

/** The servers of an address in order, and whether it requires a writable one. */
export type Address = { servers: readonly Server[]; needsPrimary: boolean }

const PARTS = /^(postgres(?:ql)?:\/\/)((?:[^/?#]*@)?)([^/?#]*)([^?#]*)(?:\?([^#]*))?$/
const SCHEME = /^postgres(?:ql)?:\/\//
const WRONG_SCHEME = 'must be a URL that starts with postgres: or postgresql:'
const UNREADABLE =
  'is not a valid URL: percent-encode special characters in user, password and database'
const WRITABLE = ['any', 'read-write', 'primary']
const READABLE = ['any', 'standby', 'prefer-standby', 'read-only']
const PORT_DEFAULT = '5432'

/**
 * Parses an address as libpq does: `postgres://user:password@a:5432,[::1]:5433/db?…`, or with hosts and
 * ports in the query, `?host=a,b&port=5432,5433`. Returns one address per host, because `pg` supports
 * only one. Error messages continue a sentence that starts with the variable's name, and never include
 * the value, which may contain a password.
 */
export function parseDatabaseUrl(text: string): Address {
  const { servers, target } = parseUrl(text)
  if (target !== null && !WRITABLE.includes(target)) {
    throw new Error('must use target_session_attrs=read-write: Annals writes to the database')
  }
  const needsPrimary = target === 'read-write' || target === 'primary' || servers.length > 1
  return { servers, needsPrimary }
}

/** Parses the address of a replica in the same way. With several hosts, connections go to one that accepts them. */
export function parseReplicaUrl(text: string): Address {
  const { servers, target } = parseUrl(text)
  if (target !== null && !READABLE.includes(target)) {
    throw new Error('must not require a writable server: leave target_session_attrs out')
  }
  return { servers, needsPrimary: false }
}

/** `target` is the kind of server that the address requires. */
function parseUrl(text: string): { servers: Server[]; target: string | null } {
  const [, scheme, login = '', authority = '', path = '', search = ''] = PARTS.exec(text) ?? []
  if (scheme === undefined) throw new Error(SCHEME.test(text) ? UNREADABLE : WRONG_SCHEME)
  const query = new URLSearchParams(search)
  const target = query.get('target_session_attrs')
  const options = query.get('options')
  const hosts = readHosts(authority, query)
  // Handled by the service: it names each connection and merges the settings with its own.
  for (const name of [
    'target_session_attrs',
    'load_balance_hosts',
    'options',
    'application_name',
  ]) {
    query.delete(name)
  }
  const servers = hosts.map((host) => ({
    connectionString: addressOf({ scheme, login, path, query }, host),
    ...(options && { options }),
  }))
  return { servers, target }
}

/** The location of a server for messages, without user and password. */
export function hostAndPort(server: Server): string {
  if ('host' in server) return `${server.host}:${server.port}`
  const url = URL.parse(server.connectionString)
  const host = url?.searchParams.get('host') ?? (url?.hostname || 'localhost')
  return `${host}:${url?.port || PORT_DEFAULT}`
}

type Host = { name: string; port: string | null }

function readHosts(authority: string, query: URLSearchParams): Host[] {
  const listed = authority.split(',').map(readHost)
  const names = query.get('host')?.split(',') ?? listed.map(({ name }) => name)
  const ports = query.get('port')?.split(',') ?? listed.map(({ port }) => port)
  if (ports.length !== 1 && ports.length !== names.length) {
    throw new Error('must have one port for all hosts, or one port for each host')
  }
  return names.map((name, nth) => {
    if (name === '' && names.length > 1) throw new Error('must not have an empty host in its list')
    return { name, port: checkPort(ports[ports.length === 1 ? 0 : nth] || null) }
  })
}

/** `host`, `host:5432`, `[::1]` or `[::1]:5432`. */
function readHost(text: string): Host {
  const [, name, port] = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/.exec(text) ?? []
  if (name === undefined) {
    throw new Error('has an invalid host: use host:port, or [::1]:port for an IPv6 address')
  }
  return { name, port: port || null }
}

function checkPort(port: string | null): string | null {
  if (port === null || (/^\d{1,5}$/.test(port) && Number(port) >= 1 && Number(port) <= 65_535)) {
    return port
  }
  throw new Error(
    'has a port that is not a number from 1 to 65535; percent-encode special characters in user and password',
  )
}

type Rest = { scheme: string; login: string; path: string; query: URLSearchParams }

function addressOf({ scheme, login, path, query }: Rest, { name, port }: Host): string {
  const own = new URLSearchParams(query)
  own.delete('host')
  own.delete('port')
  const isSocket = name.startsWith('/') || /^%2f/i.test(name)
  if (isSocket) own.set('host', name.startsWith('/') ? name : decodeURIComponent(name))
  const isBareIpv6 = !name.startsWith('[') && name.includes(':')
  const host = isSocket ? 'localhost' : isBareIpv6 ? `[${name}]` : name
  const search = own.size > 0 ? `?${own.toString()}` : ''
  const address = `${scheme}${login}${host}${port === null ? '' : `:${port}`}${path}${search}`
  if (!URL.canParse(host === '' ? address.replace('@/', '@localhost/') : address)) {
    throw new Error(UNREADABLE)
  }
  return address
}
