/** True if an entry is this address or a CIDR range that contains it. Skips entries that aren't valid. */
export function isInEntries(address: string, entries: readonly string[]): boolean {
  const own = parseAddress(address)
  if (!own) return false
  return entries.some((entry) => {
    const [baseText = '', bitsText] = entry.split('/')
    const base = parseAddress(baseText)
    if (base?.width !== own.width) return false
    const bits = bitsText === undefined ? own.width : Number(bitsText)
    if (!Number.isInteger(bits) || bits < 0 || bits > own.width) return false
    const hostBits = BigInt(own.width - bits)
    return own.value >> hostBits === base.value >> hostBits
  })
}

type Address = { width: number; value: bigint }

function parseAddress(text: string): Address | null {
  if (text.includes(':')) return parseIpv6(text)
  const parts = text.split('.').map(Number)
  const isValid = parts.length === 4 && parts.every((part) => part >= 0 && part <= 255)
  return isValid && /^[\d.]+$/.test(text) ? { width: 32, value: joinParts(parts, 8) } : null
}

/** The URL parser validates the address and removes what can be written in several ways. */
function parseIpv6(text: string): Address | null {
  const host = URL.parse(`http://[${text}]`)?.hostname.slice(1, -1)
  if (host === undefined) return null
  const [before = '', after] = host.split('::')
  const [first, last] = [before, after ?? ''].map((side) => side.split(':').filter(Boolean))
  if (!first || !last) return null
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0')
  const parts = [...first, ...zeros, ...last].map((part) => Number.parseInt(part, 16))
  return { width: 128, value: joinParts(parts, 16) }
}

function joinParts(parts: readonly number[], bits: number): bigint {
  return parts.reduce((sum, part) => (sum << BigInt(bits)) | BigInt(part), 0n)
}
