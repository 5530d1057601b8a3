/**
 * Whether a caller would rather have gzip than the plain bytes (RFC 9110, 12.5.3). Without the
 * header, and when nothing we have would please, it gets the plain bytes.
 */
export function prefersGzip(header: string | undefined): boolean {
  const { gzip, identity } = readQualities(header)
  return gzip > 0 && gzip >= identity
}

/** Whether it would rather have Brotli, which is smaller, than gzip and the plain bytes. */
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

/** What is no quality counts as a refusal: plain bytes are never wrong. */
function qualityOf(parameters: readonly string[]): number {
  const text = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  if (text === undefined) return 1
  return /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(text) ? Number(text) : 0
}
