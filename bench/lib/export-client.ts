import { createHash } from 'node:crypto'
import { get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { requestBytes } from './http-load.ts'
import { MIB, rssBytesOf } from './processes.ts'
import type { Service } from './service.ts'

const SLOW_CLIENTS = 50
const SLOW_BYTES_PER_SECOND = 4_096
const STALL_MS = 10_000

export type ExportOptions = { source: string; format: string; filters?: object; limit?: number }

export type Download = {
  rows: number
  bytes: number
  seconds: number
  firstByteMs: number
  rssGrowthMb: number
}

/** Downloads as fast as possible, and checks the digest in the trailer. */
export async function exportAll(
  service: Service,
  key: string,
  options: ExportOptions,
): Promise<Download> {
  const jobId = await createJob(service, key, options)
  const before = rssBytesOf(service.pid)
  let peak = before
  const sampling = setInterval(() => (peak = Math.max(peak, rssBytesOf(service.pid))), 50)
  const startedAt = performance.now()
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(
      {
        host: '127.0.0.1',
        port: service.port,
        path: `/v1/exports/${jobId}/download`,
        headers: { authorization: `Bearer ${key}` },
      },
      resolve,
    ).on('error', reject),
  )
  if (response.statusCode !== 200) throw new Error(`a download returned ${response.statusCode}`)
  const hash = createHash('sha256')
  let firstByteMs = 0
  let bytes = 0
  let rows = options.format === 'CSV' ? -1 : 0
  for await (const chunk of response) {
    if (firstByteMs === 0) firstByteMs = performance.now() - startedAt
    hash.update(chunk)
    bytes += chunk.length
    rows += countLines(chunk)
  }
  clearInterval(sampling)
  if (response.trailers['x-content-sha256'] !== hash.digest('hex')) {
    throw new Error('the trailer has a different digest')
  }
  const seconds = (performance.now() - startedAt) / 1_000
  return { rows, bytes, seconds, firstByteMs, rssGrowthMb: (peak - before) / MIB }
}

/** How much the memory of the service grows with many clients that hardly read, while `beside` runs. */
export async function growthBySlowClients(
  service: Service,
  key: string,
  options: ExportOptions,
  beside: () => Promise<void> = async () => {},
): Promise<number> {
  const before = rssBytesOf(service.pid)
  const clients: Socket[] = []
  while (clients.length < SLOW_CLIENTS) clients.push(await readSlowly(service, key, options))
  // System buffers absorb the first megabytes of each download. Only then are the clients slow.
  await new Promise((resolve) => setTimeout(resolve, STALL_MS))
  await beside()
  const growthMb = (rssBytesOf(service.pid) - before) / MIB
  for (const client of clients) client.destroy()
  return growthMb
}

async function readSlowly(service: Service, key: string, options: ExportOptions): Promise<Socket> {
  const jobId = await createJob(service, key, options)
  const socket = connect(service.port, '127.0.0.1')
  socket.write(requestBytes('GET', `/v1/exports/${jobId}/download`, { key }))
  const timer = setInterval(() => void socket.read(SLOW_BYTES_PER_SECOND), 1_000)
  socket.on('close', () => clearInterval(timer))
  socket.on('error', () => {})
  return socket
}

async function createJob(service: Service, key: string, options: ExportOptions): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${service.port}/v1/exports`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      // After a long download the service can be closing a kept-alive connection.
      connection: 'close',
    },
    body: JSON.stringify(options),
  })
  const text = await response.text()
  if (response.status !== 201) throw new Error(text)
  return JSON.parse(text).jobId
}

export function countLines(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}

export function rowOf(name: string, { rows, bytes, seconds, firstByteMs, rssGrowthMb }: Download) {
  return {
    name,
    rows,
    seconds,
    'rows/s': rows / seconds,
    'MB/s': bytes / seconds / MIB,
    'bytes/row': bytes / Math.max(1, rows),
    'first byte ms': firstByteMs,
    'RSS growth MB': rssGrowthMb,
  }
}
