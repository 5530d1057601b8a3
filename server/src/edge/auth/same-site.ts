import type { IncomingHttpHeaders } from 'node:http'
import { ApiError } from '../../errors.ts'

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses a change that another site's page asks for with our cookie. A browser says where a request
 * comes from: `Sec-Fetch-Site`, or `Origin` where that is not sent. Who sends neither is no browser,
 * and has the cookie because it was given to him.
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
  // The scheme is not compared: behind a proxy that ends TLS we do not know it.
  return URL.canParse(origin) && host !== undefined && new URL(origin).host === host.toLowerCase()
}
