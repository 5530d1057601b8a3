import type { FastifyRequest } from 'fastify'
import { type AddressRanges, isInRanges, parseIpAddress } from '../../tenancy/allowlist.ts'

/** The address of a caller that a trusted proxy did not name. No allowlist contains it. */
const UNKNOWN_ADDRESS = 'unknown'
const ADDRESSES_MAX = 10_000

/** Reads the address of a request's caller, through trusted proxies. */
export class ClientAddresses {
  readonly #trustedProxies: AddressRanges
  /** Keyed by the address as the socket reports it. Most calls come from few addresses, and parsing is slow. */
  readonly #known = new Map<string, string>()

  constructor(trustedProxies: AddressRanges) {
    this.#trustedProxies = trustedProxies
  }

  of({ socket, headers }: Pick<FastifyRequest, 'socket' | 'headers'>): string {
    const peer = socket.remoteAddress ?? ''
    const forwardedFor = this.#trustedProxies.length > 0 ? headers['x-forwarded-for'] : undefined
    const known = forwardedFor === undefined ? this.#known.get(peer) : undefined
    if (known !== undefined) return known
    const address = clientAddress(peer, forwardedFor, this.#trustedProxies)
    if (this.#known.size >= ADDRESSES_MAX) this.#known.clear()
    if (forwardedFor === undefined) this.#known.set(peer, address)
    return address
  }
}

/**
 * The caller's address: the socket's, or the one that trusted proxies report in `X-Forwarded-For`. The
 * header is read from the right, because a caller can write anything to the left of its own address.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | string[] | undefined,
  trustedProxies: AddressRanges,
): string {
  let address = normalize(socketAddress ?? '') ?? ''
  const header = [forwardedFor ?? []].flat().join(',')
  const hops = header.trim() === '' ? [] : header.split(',')
  for (const hop of hops.toReversed()) {
    if (!isInRanges(address, trustedProxies)) return address
    const candidate = normalize(hop.trim())
    // The proxy served someone it can't name. With the proxy's own address, that caller would pass an
    // allowlist that contains the proxy, and share its rate limits.
    if (candidate === null) return UNKNOWN_ADDRESS
    address = candidate
  }
  return address
}

/** `::ffff:10.0.0.1` becomes 10.0.0.1, and a zone id or port is removed. */
function normalize(text: string): string | null {
  const bare = text.replace(/^\[(.+)\](:\d+)?$/, '$1').replace(/%.*$/, '')
  const withoutPort = bare.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return parseIpAddress(withoutPort)?.toString() ?? null
}

/** Rate limits count by network: for IPv6 that is the /64, because one client controls all of it. */
export function networkOf(address: string): string {
  return ipv6Prefix(address, 4)
}

/** The /48 of an IPv6 address: the most that one customer of a provider usually gets. */
export function siteOf(address: string): string {
  return ipv6Prefix(address, 3)
}

/** Returns an IPv4 address unchanged. */
function ipv6Prefix(address: string, groups: number): string {
  const parsed = parseIpAddress(address)
  if (parsed?.kind() !== 'ipv6') return address
  return parsed.toNormalizedString().split(':').slice(0, groups).join(':')
}
