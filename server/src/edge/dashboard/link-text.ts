import type { FastifyInstance } from 'fastify'
import type { LinkToken } from '../../tenancy/member/one-time-link-store.ts'

/**
 * Builds a one-time link. Its token comes after the `#`, which browsers never send, so it appears in no
 * request, proxy log or Referer. The host is the configured URL or the listening address, never the request's
 * `Host`, which an attacker can choose.
 */
export function linkText(
  { publicUrl }: { publicUrl: string | null },
  server: Pick<FastifyInstance, 'listeningOrigin'>,
  token: LinkToken,
): string {
  return linkUrl(publicUrl ?? server.listeningOrigin, token)
}

export function linkUrl(baseUrl: string, token: LinkToken): string {
  return `${baseUrl}/app/link#${token}`
}
