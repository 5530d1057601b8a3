import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { machineMs } from '../lib/machine-clock.ts'

/**
 * The receiver of the measured webhooks, which records what arrived. Uses raw sockets, like the load,
 * because Node's HTTP server would use more of the two cores than the dispatcher under test.
 *
 *   POST /<behavior>/<name>     a delivery, recorded under this name
 *   GET  /control/ports          all ports; the service treats each as a separate receiver
 *   GET  /control/<what>/<name>  `summary`, `arrivals` or `sample`
 */
const PORTS = Number(process.env.RECEIVER_PORTS ?? 1)
const DRIP_MS = 500
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
const FAILURE = 'HTTP/1.1 500 Internal Server Error\r\ncontent-length: 2\r\n\r\nno'
const ID_LENGTH = 36
/** A body starts with `{"id":"` and the id of its event. */
const ID_AT = 7

type Recording = {
  requests: number
  lastAtMs: number
  /** When the first byte of each event's first delivery arrived. */
  events: Map<string, number>
  deliveries: Set<string>
  sequences: Set<number>
  highestSequence: number
  sample: { head: string; body: string }
}
type Request = { path: string; head: string; headEnd: number; bytes: Buffer }

const recordings = new Map<string, Recording>()
const servers = Array.from({ length: PORTS }, () =>
  createServer({ noDelay: true }, serve).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => once(server, 'listening')))
const ports = servers.map((server) => {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
})
process.stdout.write(`http://127.0.0.1:${ports[0]}\n`)

function serve(socket: Socket): void {
  let pending: Buffer | null = null
  let firstByteAtMs = 0
  // A sender resets the connection when a hanging request times out.
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    if (pending === null) firstByteAtMs = machineMs()
    const bytes: Buffer = pending === null ? chunk : Buffer.concat([pending, chunk])
    const request = readRequest(bytes)
    pending = request === null ? bytes : null
    if (request === null) return
    if (request.path.startsWith('/control/')) respondToControl(socket, request.path)
    else takeDelivery(socket, request, firstByteAtMs)
  })
}

/** Null if the request is incomplete. A connection sends one request at a time. */
function readRequest(bytes: Buffer): Request | null {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const head = bytes.toString('latin1', 0, headEnd)
  const length = Number(headerOf(head, 'content-length') ?? 0)
  if (bytes.length < headEnd + 4 + length) return null
  const [, path = ''] = head.slice(0, head.indexOf('\r\n')).split(' ')
  return { path, head, headEnd, bytes }
}

function headerOf(head: string, name: string): string | null {
  const start = head.indexOf(`\r\n${name}: `)
  if (start === -1) return null
  const valueAt = start + name.length + 4
  const end = head.indexOf('\r\n', valueAt)
  return head.slice(valueAt, end === -1 ? head.length : end)
}

function takeDelivery(socket: Socket, request: Request, firstByteAtMs: number): void {
  const [, behavior = '', name = ''] = request.path.split('/')
  record(recordingOf(name), request, firstByteAtMs)
  switch (behavior) {
    case 'hang':
      return
    case 'reset':
      socket.resetAndDestroy()
      return
    case 'fail':
      socket.write(FAILURE)
      return
    case 'drip':
      drip(socket)
      return
    default:
      socket.write(OK)
  }
}

/** Sends headers that never end. */
function drip(socket: Socket): void {
  socket.write('HTTP/1.1 200 OK\r\nx-drip: ')
  const timer = setInterval(() => socket.write('.'), DRIP_MS)
  socket.once('close', () => clearInterval(timer))
}

function recordingOf(name: string): Recording {
  const known = recordings.get(name)
  if (known) return known
  const recording: Recording = {
    requests: 0,
    lastAtMs: 0,
    events: new Map(),
    deliveries: new Set(),
    sequences: new Set(),
    highestSequence: 0,
    sample: { head: '', body: '' },
  }
  recordings.set(name, recording)
  return recording
}

function record(
  recording: Recording,
  { head, headEnd, bytes }: Request,
  firstByteAtMs: number,
): void {
  const bodyAt = headEnd + 4
  // Read from the bytes instead of `head`, because a substring would keep the whole string in memory.
  const eventId = bytes.toString('latin1', bodyAt + ID_AT, bodyAt + ID_AT + ID_LENGTH)
  const deliveryIdAt = head.indexOf('\r\nwebhook-id: ') + '\r\nwebhook-id: '.length
  const deliveryId = bytes.toString('latin1', deliveryIdAt, deliveryIdAt + ID_LENGTH)
  recording.requests += 1
  recording.lastAtMs = firstByteAtMs
  if (!recording.events.has(eventId)) recording.events.set(eventId, firstByteAtMs)
  recording.deliveries.add(deliveryId)
  const sequence = Number(headerOf(head, 'x-service-sequence'))
  recording.sequences.add(sequence)
  recording.highestSequence = Math.max(recording.highestSequence, sequence)
  if (recording.requests === 1) recording.sample = { head, body: bytes.toString('utf8', bodyAt) }
}

function respondToControl(socket: Socket, path: string): void {
  const [, , what = '', name = ''] = path.split('/')
  const body = Buffer.from(JSON.stringify(reportOf(what, name)))
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body]))
}

function reportOf(what: string, name: string): unknown {
  switch (what) {
    case 'ports':
      return ports
    case 'arrivals':
      return [...recordingOf(name).events]
    case 'sample':
      return recordingOf(name).sample
    default:
      return summaryOf(recordingOf(name))
  }
}

function summaryOf(recording: Recording) {
  const { requests, lastAtMs, events, deliveries, sequences, highestSequence } = recording
  return {
    requests,
    events: events.size,
    duplicates: requests - deliveries.size,
    // Sequences start at 1.
    sequenceGaps: highestSequence - sequences.size,
    firstAtMs: events.values().next().value ?? 0,
    lastAtMs,
  }
}
