/**
 * Whether the caller prefers gzip to the uncompressed body (RFC 9110, section 12.5.3). Without the header, or
 * if it accepts no encoding we support, the caller gets the uncompressed body.
 */
export function prefersGzip(header: string | undefined): boolean {
  const { gzip, identity } = readQualities(header)
  return gzip > 0 && gzip >= identity
}

/**
 * Whether the caller accepts Brotli, which is smaller, with a quality at least as high as gzip and identity.
 */
export function prefersBrotli(header: string | undefined): boolean {
  const { brotli, gzip, identity } = readQualities(header)
  return brotli > 0 && brotli >= gzip && brotli >= identity
}

function readQualities(header: string | undefined) {
  const qualities = parseQualities(header ?? '')
  const others = qualities.get('*') ?? 0
  return {
    brotli: qualities.get('br') ?? others,
    gzip: qualities.get('gzip') ?? qualities.get('x-gzip') ?? others,
    identity: qualities.get('identity') ?? 0,
  }
}

function parseQualities(header: string): Map<string, number> {
  const qualities = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((part) => part.trim())
    if (coding !== '') qualities.set(coding, qualityOf(parameters))
  }
  return qualities
}

/** An invalid quality counts as 0, because an uncompressed body is always acceptable. */
function qualityOf(parameters: readonly string[]): number {
  const text = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  if (text === undefined) return 1
  return /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(text) ? Number(text) : 0
}
