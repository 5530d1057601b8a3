import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../../errors.ts'

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Rejects changes that another site's page requests with our cookie. Browsers send the request's source in
 * `Sec-Fetch-Site`, or else in `Origin`. A client that sends neither isn't a browser, so no other site can
 * have made it send the cookie.
 */
export function refuseCrossSite(
  { method, headers }: { method: string; headers: IncomingHttpHeaders },
  publicOrigin: string | null,
): void {
  if (SAFE_METHODS.has(method)) return
  const site = headers['sec-fetch-site']
  if (site === 'same-origin' || site === 'none') return
  const { origin } = headers
  if (site === undefined && origin === undefined) return
  if (site === undefined && origin !== undefined && isOurs(origin, headers, publicOrigin)) return
  throw new ApiError('cross_site')
}

function isOurs(
  origin: string,
  { host }: IncomingHttpHeaders,
  publicOrigin: string | null,
): boolean {
  if (origin === publicOrigin) return true
  // Don't compare the scheme: behind a proxy that terminates TLS, we don't know it.
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase()
}
