import ipaddr from 'ipaddr.js'

export const ALLOWLIST_ENTRIES_MAX = 200

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

/** A list of CIDRs, ready to be asked. A single address counts as a range of one. */
export type AddressRanges = readonly Range[]

/** The entry as a CIDR, or null when it is none. Host bits are cleared, so equal ranges look equal. */
export function parseCidr(text: string): string | null {
  const trimmed = text.trim()
  if (ipaddr.isValidCIDR(trimmed)) {
    const [address, bits] = ipaddr.parseCIDR(trimmed)
    if (
      !ipaddr.IPv4.isValidFourPartDecimal(trimmed.split('/')[0] ?? '') &&
      address.kind() === 'ipv4'
    ) {
      return null
    }
    const base =
      address.kind() === 'ipv4'
        ? ipaddr.IPv4.networkAddressFromCIDR(trimmed)
        : ipaddr.IPv6.networkAddressFromCIDR(trimmed)
    return `${base.toString()}/${bits}`
  }
  if (ipaddr.IPv4.isValidFourPartDecimal(trimmed)) return `${trimmed}/32`
  if (ipaddr.IPv6.isValid(trimmed)) return `${ipaddr.IPv6.parse(trimmed).toString()}/128`
  return null
}

export function compileRanges(cidrs: readonly string[]): AddressRanges {
  return cidrs.map((cidr) => ipaddr.parseCIDR(parseCidr(cidr) ?? cidr))
}

/** IPv4 written inside IPv6 (`::ffff:1.2.3.4`) is judged as the IPv4 address it is. */
export function isInRanges(address: string, ranges: AddressRanges): boolean {
  if (ranges.length === 0 || !ipaddr.isValid(address)) return false
  const parsed = ipaddr.process(address)
  return ranges.some(([base, bits]) => parsed.kind() === base.kind() && parsed.match(base, bits))
}
