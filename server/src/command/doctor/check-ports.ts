import { OperatorError } from '../../errors.ts'
import { refuseOccupiedPorts } from '../../listen-ports.ts'
import { parseJson } from '../../platform/json/parse-json.ts'
import { type Finding, finding, type Machine } from './check.ts'

const RESPONSE_MS_MAX = 3_000
const BODY_BYTES_MAX = 1_000

/** Asks the service if it runs here. If nothing responds, checks that it could listen, as a start does. */
export async function checkPorts({ config }: Machine): Promise<Finding> {
  const { host, port, metricsPort } = config
  if (port === 0) return finding.ok('ANNALS_PORT is 0: each start chooses a free port.')
  const found = await askService(`http://${reachable(host)}:${port}/ready`)
  if (found !== null) return judgeResponse(found, `${host}:${port}`)
  const worker = metricsPort
    ? await askService(`http://${reachable(host)}:${metricsPort}/metrics`)
    : null
  if (worker?.status === 200 && worker.text.includes('annals_')) {
    return finding.ok(`A worker responds on ${host}:${metricsPort}.`)
  }
  try {
    await refuseOccupiedPorts(config, 'all')
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return finding.failed(error.message, 'Then run annals doctor again.')
  }
  const ports = metricsPort ? `${port} and ${metricsPort}` : String(port)
  return finding.ok(
    `No service runs on this machine, and it could listen on ${host}, port ${ports}.`,
  )
}

/** Null if no program listens. */
async function askService(url: string): Promise<{ status: number; text: string } | null> {
  try {
    const signal = AbortSignal.timeout(RESPONSE_MS_MAX)
    const response = await fetch(url, { signal, redirect: 'manual' })
    return { status: response.status, text: await readStart(response) }
  } catch (error) {
    const cause: unknown = error instanceof Error ? error.cause : null
    const code = cause instanceof Error && 'code' in cause ? cause.code : null
    if (code === 'ECONNREFUSED' || code === 'EADDRNOTAVAIL') return null
    return { status: 0, text: '' }
  }
}

/** Another program can send a body without an end. */
async function readStart({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= BODY_BYTES_MAX) break
  }
  return Buffer.concat(chunks).toString('utf8', 0, BODY_BYTES_MAX)
}

function judgeResponse({ status, text }: { status: number; text: string }, at: string): Finding {
  const body = parse(text)
  if (status === 200 && body?.['ok'] === true) return finding.ok(`A service responds on ${at}.`)
  if (status === 503 && typeof body?.['traceId'] === 'string') {
    return finding.failed(
      `The service on ${at} is not ready: ${String(body['error'])}`,
      'See the checks of the disk and the database, and the log of the service.',
    )
  }
  return finding.failed(
    `A program listens on ${at}, but doesn't respond like a service of Annals.`,
    'Stop this program, or set ANNALS_HOST and ANNALS_PORT.',
  )
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = parseJson(text)
    return typeof value === 'object' && value !== null ? { ...value } : null
  } catch {
    return null
  }
}

/** An address that stands for all addresses can't be called. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
