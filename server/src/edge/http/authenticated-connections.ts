import type { Socket } from 'node:net'

const authenticated = new WeakSet<Socket>()

/** Call when a request turns out to have a valid key or session. */
export function markAuthenticated(socket: Socket): void {
  authenticated.add(socket)
}

/** Whether a request on this connection had a valid key or session. Behind a proxy, others may use it too. */
export function isAuthenticated(socket: Socket): boolean {
  return authenticated.has(socket)
}
