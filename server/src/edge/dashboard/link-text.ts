import type { FastifyInstance } from 'fastify'
import type { LinkToken } from '../../tenancy/one-time-link-store.ts'

/**
 * The link that a person opens. Its token stands behind the `#`, which a browser keeps to itself: it
 * is in no request, no log of a proxy and no Referer. Where it leads is the operator's word or the
 * address we listen on, never the `Host` of a request, which a stranger may choose.
 */
export function linkText(
  { publicUrl }: { publicUrl: string | null },
  server: Pick<FastifyInstance, 'listeningOrigin'>,
  token: LinkToken,
): string {
  return linkAt(publicUrl ?? server.listeningOrigin, token)
}

export function linkAt(baseUrl: string, token: LinkToken): string {
  return `${baseUrl}/app/link#${token}`
}
