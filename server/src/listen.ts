import type { Config } from './config.ts'
import type { HttpTimeouts } from './edge/http/http-server.ts'
import { stopServer } from './edge/http/stop-server.ts'
import { type ScrapeDeps, serveMetrics } from './edge/serve-metrics.ts'
import { buildServer, type ServerDeps } from './edge/server.ts'

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
  deps: ScrapeDeps,
): Promise<string | null> {
  if (metricsPort === null) return null
  const listener = stack.use(await serveMetrics(deps, { host, port: metricsPort }))
  return `http://${hostInUrl(host)}:${listener.port}`
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
