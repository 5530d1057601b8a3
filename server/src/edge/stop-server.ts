import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { withDeadline } from '../platform/deadline.ts'

/** Running requests get this long to end; so do downloads. */
const REQUESTS_MS_MAX = 5_000
/** A connection that has sent nothing by then is not about to: browsers open some in advance. */
const FIRST_BYTE_MS_MAX = 500
/** What a request that was cut still does is bounded elsewhere; nobody waits for its answer. */
const AFTER_CUT_MS_MAX = 500

/** The connections that are open, among them those that are no longer HTTP's. */
export function trackConnections(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

/**
 * Stops listening and closes idle connections and live streams, lets running requests end, and cuts
 * what is left after 5 s.
 */
export async function stopServer(
  app: FastifyInstance,
  sockets: ReadonlySet<Socket>,
): Promise<void> {
  const ended = once(app.server, 'close')
  // Before Fastify does it: that waits for the downloads first.
  app.server.close()
  const closed = Promise.all([ended, app.close()])
  const late = () => new Error('requests are still running')
  const silent = setTimeout(() => {
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }, FIRST_BYTE_MS_MAX)
  try {
    await withDeadline(closed, { timeoutMs: REQUESTS_MS_MAX, late })
  } catch {
    for (const socket of sockets) socket.destroy()
    await withDeadline(closed, { timeoutMs: AFTER_CUT_MS_MAX, late }).catch(() => {})
  } finally {
    clearTimeout(silent)
  }
}
