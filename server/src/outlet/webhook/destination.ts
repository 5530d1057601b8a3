import { isIP } from 'node:net'
import { isPublicAddress } from './public-address.ts'

/** `ports` are allowed beside 443, and only asked in `public` mode. */
export type DestinationRules = { mode: 'public' | 'any'; ports: readonly number[] }

export const DESTINATION_CHARACTERS_MAX = 2_048

const NAME_CHARACTERS_MAX = 253
const LABEL = /^[a-z0-9_-]{1,63}$/

/** Names that mean something else on every network (RFC 6761, 6762, 8375, ICANN's `internal`). */
const LOCAL_SUFFIXES = ['localhost', 'local', 'internal', 'home.arpa'] as const

/**
 * What is wrong with a webhook's URL, to be read after the word for it ("the URL must be https"), or
 * null. Says all that can be known without asking: an address is judged here, a name when it is
 * dialled (dialler.ts), on the addresses it has then.
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
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  // Not `url.hash`, which is empty for a lone "#".
  if (url.href.includes('#')) return 'must not hold a fragment'
  // The escapes of the URL as it is sent can be longer than the text that was given.
  return url.href.length > DESTINATION_CHARACTERS_MAX ? LENGTH_FAULT : null
}

function portFault(url: URL, { mode, ports }: DestinationRules): string | null {
  const port = Number(url.port || 443)
  const allowed = [...new Set([443, ...ports])]
  if (mode === 'any' || allowed.includes(port)) return null
  return `uses port ${port}; allowed are ${allowed.join(', ')}`
}

/** The parser of URLs has brought all spellings of an IPv4 address (`0x7f.1`, `2130706433`) to one. */
function hostFault({ hostname }: URL, { mode }: DestinationRules): string | null {
  const host = hostname.replace(/^\[(.+)\]$/, '$1')
  if (isIP(host) !== 0) {
    const isAllowed = mode === 'any' || isPublicAddress(host)
    return isAllowed ? null : `is the address ${host}, which is not public`
  }
  // One dot at the end says that the name is complete; it is the same name.
  const name = host.replace(/\.$/, '')
  const labels = name.split('.')
  if (name.length > NAME_CHARACTERS_MAX || !labels.every((label) => LABEL.test(label))) {
    return 'has a host that is not a valid name'
  }
  const isLocal =
    labels.length === 1 || LOCAL_SUFFIXES.some((suffix) => `.${name}`.endsWith(`.${suffix}`))
  return mode === 'public' && isLocal ? `is on the host ${name}, which is not a public name` : null
}
