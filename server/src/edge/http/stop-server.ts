import { once } from 'node:events'
import type { FastifyInstance } from 'fastify'
import { withDeadline } from '../../platform/time/deadline.ts'
import type { OpenConnections } from './open-connections.ts'

/** How long running requests and downloads have to finish. */
const REQUESTS_MS_MAX = 5_000
/** After this time, a connection that has sent nothing is considered idle: browsers open some in advance. */
const FIRST_BYTE_MS_MAX = 500
const IDLE_CHECK_MS = 50
/** How long to wait for handlers of closed connections. Their work is bounded elsewhere. */
const AFTER_CUT_MS_MAX = 500

/**
 * Stops listening, closes idle connections and live tails, waits for running requests, and closes the
 * remaining connections after 5 s.
 */
export async function stopServer(
  app: FastifyInstance,
  connections: OpenConnections,
): Promise<void> {
  const ended = once(app.server, 'close')
  // Don't leave this to Fastify, which waits for downloads first.
  app.server.close()
  const closed = Promise.all([ended, app.close()])
  const late = () => new Error('requests are still running')
  const silent = setTimeout(() => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  }, FIRST_BYTE_MS_MAX)
  const idle = closeIdle(connections)
  try {
    await withDeadline(closed, { timeoutMs: REQUESTS_MS_MAX, late })
  } catch {
    for (const socket of connections) socket.destroy()
    await withDeadline(closed, { timeoutMs: AFTER_CUT_MS_MAX, late }).catch(() => {})
  } finally {
    clearTimeout(silent)
    clearInterval(idle)
  }
}

/**
 * Closes connections that had a request in progress when the shutdown began, once all their responses are sent.
 * Their clients keep them open for the next request, so the shutdown would wait for its full timeout.
 */
function closeIdle(connections: OpenConnections): NodeJS.Timeout {
  const answering = new Set(connections.busy)
  return setInterval(() => {
    for (const socket of answering.difference(new Set(connections.busy))) {
      answering.delete(socket)
      socket.destroySoon()
    }
  }, IDLE_CHECK_MS)
}
