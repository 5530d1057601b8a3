import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { eventually } from '../harness/timing/eventually.ts'
import { type RawResponse, RawConnection } from '../harness/http/raw-http.ts'

const RESPONSE_MS_MAX = 15_000
const AVAILABLE_MS_MAX = 60_000
const AT_ONCE = 16

/** How a client disconnects: with a clean close or a reset. */
export const DEPARTURES = ['close', 'reset'] as const
export type Departure = (typeof DEPARTURES)[number]

/** Sends the bytes and disconnects without reading the response. */
export async function sendAndLeave(
  url: string,
  bytes: Buffer,
  departure: Departure,
): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port) })
  // The service may close the connection first.
  socket.on('error', () => {})
  socket.write(bytes, () => (departure === 'reset' ? socket.resetAndDestroy() : socket.destroy()))
  await once(socket, 'close')
}

/** The first response to the bytes. Fails if there is none in time. */
export async function responseTo(url: string, bytes: Buffer): Promise<RawResponse> {
  await using connection = new RawConnection(url)
  const late = setTimeout(() => void connection[Symbol.asyncDispose](), RESPONSE_MS_MAX)
  try {
    return await connection.send(bytes).response()
  } finally {
    clearTimeout(late)
  }
}

/** Repeats a request while a busy machine delays the database for so long that the service reports an outage. */
export async function whenAvailable(send: () => Promise<RawResponse>): Promise<RawResponse> {
  const sendOnce = async () => {
    const response = await send()
    const { status, body } = response
    assert(status !== 503 || JSON.parse(body).code !== 'unavailable', body)
    return response
  }
  return await eventually(sendOnce, { timeoutMs: AVAILABLE_MS_MAX })
}

/** Runs all of them, sixteen at a time. */
export async function attackAll<T>(items: readonly T[], attack: (item: T) => Promise<void>) {
  const queue = items[Symbol.iterator]()
  const run = async () => {
    for (const item of queue) await attack(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, run))
}

/** Every refusal must be a 4xx with a standard error body. */
export function assertRefusedOrServed({ status, body }: RawResponse, about: string): void {
  assert(status < 500, `${about}: ${status} ${body.slice(0, 300)}`)
  if (status < 400) return
  const { error, code, traceId } = JSON.parse(body)
  assert(error && code && traceId, `${about}: ${body.slice(0, 300)}`)
}
