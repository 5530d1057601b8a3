import { type AddressRanges, isInRanges, parseAddress } from '../../tenancy/allowlist.ts'

/**
 * The caller's address: the socket's, or what the trusted proxies before us wrote. The header is
 * walked from the right, because everything left of the first untrusted hop is the caller's word.
 */
export function clientAddress(
  socketAddress: string | undefined,
  forwardedFor: string | string[] | undefined,
  trustedProxies: AddressRanges,
): string {
  let address = plain(socketAddress ?? '') ?? ''
  const hops = [forwardedFor ?? []].flat().join(',').split(',')
  for (const hop of hops.toReversed()) {
    if (!isInRanges(address, trustedProxies)) return address
    const candidate = plain(hop.trim())
    // A proxy that passes on nonsense is the last hop we can name.
    if (candidate === null) return address
    address = candidate
  }
  return address
}

/** `::ffff:10.0.0.1` is 10.0.0.1; a zone id or a port is no part of an address. */
function plain(text: string): string | null {
  const bare = text.replace(/^\[(.+)\](:\d+)?$/, '$1').replace(/%.*$/, '')
  const withoutPort = bare.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return parseAddress(withoutPort)?.toString() ?? null
}

/** Whom to count by an address: whoever has one of IPv6 has the 2^64 beside it as well. */
export function networkOf(address: string): string {
  const parsed = parseAddress(address)
  if (parsed?.kind() !== 'ipv6') return address
  return parsed.toNormalizedString().split(':').slice(0, 4).join(':')
}
