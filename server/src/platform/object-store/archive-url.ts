import { fileURLToPath } from 'node:url'

type ArchiveLocation =
  { kind: 'folder'; path: string } | { kind: 's3'; bucket: string; prefix: string }

/**
 * Parses the value of `ANNALS_ARCHIVE_URL`. Error messages continue a sentence that starts with that name,
 * and never include the value, which may contain a secret.
 */
export function parseArchiveUrl(text: string): ArchiveLocation {
  const url = URL.parse(text)
  if (!url || !['file:', 's3:'].includes(url.protocol)) {
    throw new Error('must be a URL that starts with file: or s3:')
  }
  const { protocol, hostname, pathname, username, password, search, hash } = url
  if (username || password || search || hash) {
    throw new Error('must not contain a user, a password, a query or a fragment')
  }
  if (protocol === 's3:') {
    if (hostname === '') throw new Error('must name a bucket: s3://bucket/prefix')
    return { kind: 's3', bucket: hostname, prefix: decode(pathname).replaceAll(/^\/+|\/+$/g, '') }
  }
  if (!/^file:\/\/\//i.test(text)) throw new Error('must have three slashes: file:///folder')
  return { kind: 'folder', path: decode(text, fileURLToPath) }
}

function decode(text: string, read: (text: string) => string = decodeURIComponent): string {
  try {
    const decoded = read(text)
    if (!decoded.includes('\0')) return decoded
  } catch {
    // The original message could include the value.
  }
  throw new Error('has a path with an invalid % escape')
}
