import { connect, type Socket } from 'node:net'

/**
 * Closed-loop load over keep-alive connections, one request at a time each. Uses raw sockets, because a
 * client library would use more of the two cores than the service under test.
 */
export type LoadOptions = {
  port: number
  connections: number
  durationMs: number
  /** The minimum time between the requests of a connection. By default, each sends as soon as it can. */
  everyMs?: number
  /** The bytes of a connection's next request. */
  request: (connection: number, nth: number) => Buffer
  /** Ends the load early. */
  isDone?: () => boolean
  /** Called for every response. */
  onResponse?: (status: number, body: string) => void
}

export type LoadResult = {
  requests: number
  byStatus: Record<string, number>
  seconds: number
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** Counts only responses with a status below 300. */
  acceptedPerSecond: number
  acceptedP99Ms: number
}

export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const latencies: number[] = []
  const accepted: number[] = []
  const byStatus: Record<string, number> = {}
  const startedAt = performance.now()
  const endsAt = startedAt + options.durationMs
  await Promise.all(
    Array.from({ length: options.connections }, (_, index) =>
      drive(options, index, endsAt, (status, ms, body) => {
        latencies.push(ms)
        if (status < 300) accepted.push(ms)
        byStatus[status] = (byStatus[status] ?? 0) + 1
        options.onResponse?.(status, body)
      }),
    ),
  )
  const seconds = (performance.now() - startedAt) / 1_000
  return {
    requests: latencies.length,
    byStatus,
    seconds,
    perSecond: latencies.length / seconds,
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    acceptedPerSecond: accepted.length / seconds,
    acceptedP99Ms: percentile(accepted, 0.99),
  }
}

function drive(
  { port, request, isDone, everyMs = 0 }: LoadOptions,
  connection: number,
  endsAt: number,
  onResponse: (status: number, ms: number, body: string) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let nth = 0
    let sentAt = 0
    let pending = ''
    const send = () => {
      if (performance.now() >= endsAt || isDone?.() === true) {
        socket.end()
        resolve()
        return
      }
      sentAt = performance.now()
      socket.write(request(connection, nth))
      nth += 1
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      pending += chunk
      const headEnd = pending.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/content-length: (\d+)/i.exec(pending.slice(0, headEnd))?.[1] ?? 0)
      if (pending.length < headEnd + 4 + length) return
      const status = Number(pending.slice(9, 12))
      const body = pending.slice(headEnd + 4, headEnd + 4 + length)
      pending = pending.slice(headEnd + 4 + length)
      const tookMs = performance.now() - sentAt
      onResponse(status, tookMs, body)
      if (tookMs >= everyMs) send()
      else setTimeout(send, everyMs - tookMs)
    })
  })
}

export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return 0
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

export function requestBytes(
  method: string,
  path: string,
  { key, body }: { key?: string; body?: string } = {},
): Buffer {
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
    ...(body === undefined
      ? []
      : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]),
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`)
}
