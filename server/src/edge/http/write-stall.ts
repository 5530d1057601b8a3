import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const EXEMPT = new WeakSet<ServerResponse>()

/**
 * For downloads and live streams, which can stall for longer and are not closed for a new connection. A
 * route that calls this must limit how many of its responses are open at once.
 */
export function exemptFromWriteStall(response: ServerResponse): void {
  EXEMPT.add(response)
}

/**
 * True if the kernel can't take all output because the client reads too slowly. False for exempt responses.
 */
export function isWaitingForReader(response: ServerResponse): boolean {
  return response.writableLength > 0 && !EXEMPT.has(response)
}

/** Measures how long a client has had output to read without reading any of it. */
export class WriteStall {
  #takenBytes = 0
  #stalledMs = 0

  /**
   * Call at regular intervals with the response that is being sent. Returns how long the client has read
   * nothing. It adds up intervals instead of comparing clocks, so pauses of our own process don't count.
   */
  check(socket: Socket, sending: ServerResponse, intervalMs: number): number {
    const takenBytes = takenBytesOf(socket)
    const isStalled = isWaitingForReader(sending) && takenBytes === this.#takenBytes
    this.#takenBytes = takenBytes
    this.#stalledMs = isStalled ? this.#stalledMs + intervalMs : 0
    return this.#stalledMs
  }
}

/** How many bytes the kernel has accepted. It accepts more only while the client reads. */
export function takenBytesOf(socket: Socket): number {
  return socket.bytesWritten - queuedBytes(socket)
}

/**
 * The bytes of the current write that the kernel hasn't taken. `writableLength` counts a write until all of
 * it is taken, so a slow client of a large response would look stalled. Node doesn't document the handle, but
 * uses the same number to decide whether a socket has timed out.
 */
function queuedBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle')
  if (typeof handle !== 'object' || handle === null) return 0
  return Number(Reflect.get(handle, 'writeQueueSize'))
}
