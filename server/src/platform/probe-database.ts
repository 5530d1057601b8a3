import { Socket } from 'node:net'
import { Client } from 'pg'
import { withDeadline } from './deadline.ts'
import type { Server } from './pg-address.ts'
import { isOutOfDescriptors, SQLSTATE, sqlStateOf } from './pg-error.ts'
import { configOf } from './pg-servers.ts'

/** How long a statement stays unanswered before someone else is asked, and asked again. */
export const PROBE_EVERY_MS = 400
/** With the doubt before it, a caller still hears of an outage within a second. */
export const PROBE_MS_MAX = 400
/** A new connection needs several answers in a row, each of which may meet a blocked thread. */
const PROBE_WAITS = 4

/**
 * Checks on a new connection whether a server responds and `ask` returns true. A slow statement and a
 * dead network look the same to a waiting caller; a second connection tells them apart. Returns true if
 * this process can't open one.
 */
export async function probeDatabase(
  server: Server,
  ask: (client: Client) => Promise<boolean> = async () => true,
  timeoutMs: number = PROBE_MS_MAX,
): Promise<boolean> {
  const socket = new Socket()
  const client = new Client({ ...configOf(server), stream: () => socket })
  client.on('error', () => {})
  try {
    return await withDeadline(
      client.connect().then(() => ask(client)),
      { timeoutMs, waits: PROBE_WAITS, late: () => new Error('the probe got no response in time') },
    )
  } catch (error) {
    // The server has no room for the connection, but it responds.
    if (sqlStateOf(error) === SQLSTATE.TOO_MANY_CONNECTIONS) return true
    // The connection was never tried, which says nothing about the server.
    return isOutOfDescriptors(error)
  } finally {
    // Dropped without a goodbye, which would wait on the same silence.
    socket.destroy()
  }
}
