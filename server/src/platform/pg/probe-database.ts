import { Socket } from 'node:net'
import { Client } from 'pg'
import { withDeadline } from '../time/deadline.ts'
import type { Server } from './server-address.ts'
import { isOutOfDescriptors, SQLSTATE, sqlStateOf } from './pg-error.ts'
import { configOf } from './servers.ts'

/**
 * How long a statement waits for a response before a second connection probes the
 * server, and how often that repeats.
 */
export const PROBE_EVERY_MS = 400
/** Together with the delay before it, callers still learn of an outage within a second. */
export const PROBE_MS_MAX = 400
/** A new connection needs several responses in a row, and our thread may be blocked during each of them. */
const PROBE_WAITS = 4

/**
 * Checks on a new connection whether a server responds and `ask` returns true. A slow statement and a dead
 * network look the same to a waiting caller; a second connection can distinguish them. Returns true if this
 * process can't open one.
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
    // The server has no free connections, but it responds.
    if (sqlStateOf(error) === SQLSTATE.TOO_MANY_CONNECTIONS) return true
    // No connection was attempted, which says nothing about the server.
    return isOutOfDescriptors(error)
  } finally {
    // Close the socket without a clean disconnect, which could hang in the same way.
    socket.destroy()
  }
}
