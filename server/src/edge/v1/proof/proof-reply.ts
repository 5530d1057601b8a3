import type { FastifyReply } from 'fastify'

/** Whether the request names this content type. Anything else gets the default. */
export function prefersMediaType(accept: string | undefined, type: string): boolean {
  return accept?.toLowerCase().includes(type) === true
}

/** The response is text that the handler returns. */
export function asNote<Reply extends Pick<FastifyReply, 'type' | 'serializer'>>(
  reply: Reply,
): Reply {
  reply.type('text/plain; charset=utf-8').serializer(String)
  return reply
}
