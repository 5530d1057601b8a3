import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Config, ServeRole } from './config.ts'
import type { HttpTimeouts } from './edge/http/http-server.ts'
import { stopServer } from './edge/http/stop-server.ts'
import { serveMetrics } from './edge/serve-metrics.ts'
import { buildServer, type ServerDeps } from './edge/server.ts'
import { OperatorError } from './errors.ts'
import type { Logger } from './platform/logger.ts'
import type { Metrics } from './platform/metrics.ts'

/** Runs before the engine starts, so that a startup that can't succeed leaves the data folder untouched. */
export async function refuseOccupiedPorts(
  { host, port, metricsPort }: Config,
  role: ServeRole,
): Promise<void> {
  if (role !== 'worker') await refuseOccupiedPort('ANNALS_PORT', host, port)
  await refuseOccupiedPort('ANNALS_METRICS_PORT', host, metricsPort ?? 0)
}

async function refuseOccupiedPort(variable: string, host: string, port: number): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  try {
    probe.listen({ host, port })
    await once(probe, 'listening')
    probe.close()
    await once(probe, 'close')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error
    const sentence =
      reason === 'EADDRINUSE'
        ? `Port ${port} on ${host} is already in use. Stop the program that uses it, or set ${variable}.`
        : `Can't listen on ${host}:${port} (${String(reason)}). Set ANNALS_HOST and ${variable}.`
    throw new OperatorError(sentence, { cause: error })
  }
}

/** Serves the API until the stack is disposed of, and returns its URL. */
export async function listenForRequests(
  stack: AsyncDisposableStack,
  { host, port }: Config,
  deps: ServerDeps,
  timeouts: Partial<HttpTimeouts> | undefined,
): Promise<string> {
  let isDraining = false
  const server = await buildServer({ ...deps, isDraining: () => isDraining }, timeouts)
  stack.defer(async () => {
    isDraining = true
    await stopServer(server, deps.connections)
  })
  const address = await server.listen({ host, port })
  return `http://${hostInUrl(host)}:${new URL(address).port}`
}

/** Serves the metrics until the stack is disposed of. Returns their URL, or null if no port is configured. */
export async function listenForScrapes(
  stack: AsyncDisposableStack,
  { host, metricsPort }: Config,
  deps: { metrics: Metrics; logger: Logger },
): Promise<string | null> {
  if (metricsPort === null) return null
  const listener = stack.use(await serveMetrics(deps, { host, port: metricsPort }))
  return `http://${hostInUrl(host)}:${listener.port}`
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
