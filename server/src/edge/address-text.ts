/**
 * An address in which every part of the path can be decoded: one that is no percent-encoded UTF-8 is
 * taken as it stands. So it is an id that nobody has, and gets the answer of one, after the same checks.
 */
export function readableAddress(url: string): string {
  if (!url.includes('%')) return url
  const end = url.search(/[?#]/)
  const path = end === -1 ? url : url.slice(0, end)
  if (isDecodable(path)) return url
  const parts = path.split('/').map((part) => (isDecodable(part) ? part : escapePercents(part)))
  return `${parts.join('/')}${url.slice(path.length)}`
}

export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function escapePercents(part: string): string {
  return part.replaceAll('%', '%25')
}
