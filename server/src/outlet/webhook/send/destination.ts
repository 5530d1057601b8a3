import { isIP } from 'node:net'
import { isPublicAddress } from './public-address.ts'

/** `ports` are allowed in addition to 443, and only apply in `public` mode. */
export type DestinationRules = { mode: 'public' | 'any'; ports: readonly number[] }

export const DESTINATION_CHARACTERS_MAX = 2_048

const NAME_CHARACTERS_MAX = 253
const LABEL = /^[a-z0-9_-]{1,63}$/

/** Names with a different meaning on every network (RFC 6761, 6762, 8375, ICANN's `internal`). */
const LOCAL_SUFFIXES = ['localhost', 'local', 'internal', 'home.arpa'] as const

/**
 * Returns what is wrong with a webhook's URL, worded to follow its name ("the URL must be https"), or null.
 * Checks everything that needs no DNS: IP addresses are checked here, and names when connecting (connector.ts),
 * by the addresses they have then.
 */
export function destinationFault(text: string, rules: DestinationRules): string | null {
  if (text.length > DESTINATION_CHARACTERS_MAX) return LENGTH_FAULT
  const url = URL.parse(text)
  if (!url) return 'is not a valid URL'
  return schemeFault(url, rules) ?? formFault(url) ?? portFault(url, rules) ?? hostFault(url, rules)
}

const LENGTH_FAULT = `is longer than ${DESTINATION_CHARACTERS_MAX} characters`

function schemeFault(url: URL, { mode }: DestinationRules): string | null {
  if (url.protocol === 'https:') return null
  if (mode === 'public') return 'must be https'
  return url.protocol === 'http:' ? null : 'must be http or https'
}

function formFault(url: URL): string | null {
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  // Not `url.hash`, which is empty for a lone "#".
  if (url.href.includes('#')) return 'must not contain a fragment'
  // Escaping can make the URL longer than the given text.
  return url.href.length > DESTINATION_CHARACTERS_MAX ? LENGTH_FAULT : null
}

function portFault(url: URL, { mode, ports }: DestinationRules): string | null {
  const port = Number(url.port || 443)
  const allowed = [...new Set([443, ...ports])]
  if (mode === 'any' || allowed.includes(port)) return null
  return `uses port ${port}, but the allowed ports are ${allowed.join(', ')}`
}

/** The URL parser has already normalized all spellings of an IPv4 address (`0x7f.1`, `2130706433`). */
function hostFault({ hostname }: URL, { mode }: DestinationRules): string | null {
  const host = hostname.replace(/^\[(.+)\]$/, '$1')
  if (isIP(host) !== 0) {
    const isAllowed = mode === 'any' || isPublicAddress(host)
    return isAllowed ? null : `is the address ${host}, which is not public`
  }
  // A trailing dot marks a fully qualified name. It is the same name without it.
  const name = host.replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > NAME_CHARACTERS_MAX || !labels.every((label) => LABEL.test(label))) {
    return 'has a host that is not a valid name'
  }
  const isLocal =
    labels.length === 1 || LOCAL_SUFFIXES.some((suffix) => `.${name}`.endsWith(`.${suffix}`))
  return mode === 'public' && isLocal ? `is on the host ${name}, which is not a public name` : null
}
