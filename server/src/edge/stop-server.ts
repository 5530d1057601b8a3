import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { withDeadline } from '../platform/deadline.ts'

/** How long running requests and downloads can take to end. */
const REQUESTS_MS_MAX = 5_000
/** By then, a connection that has sent nothing is idle: browsers open some in advance. */
const FIRST_BYTE_MS_MAX = 500
/** How long to wait for handlers of closed connections. Their work is bounded elsewhere. */
const AFTER_CUT_MS_MAX = 500

/** All open connections, including those that were detached from the HTTP server. */
export function trackConnections(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

/**
 * Stops listening, closes idle connections and live tails, waits for running requests, and closes the
 * remaining connections after 5 s.
 */
export async function stopServer(
  app: FastifyInstance,
  sockets: ReadonlySet<Socket>,
): Promise<void> {
  const ended = once(app.server, 'close')
  // Don't leave this to Fastify, which waits for downloads first.
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
