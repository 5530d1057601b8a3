import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')

export type Service = AsyncDisposable & {
  pid: number
  /** 0 for a worker, which serves no requests. */
  port: number
  /** The port of `/metrics`. Null if there is none. */
  metricsPort: number | null
}

/** Starts a program in its own process, and waits until it prints the address it listens on. */
export function startProgram(file: string, env: Record<string, string>): Promise<Service> {
  return start(join(ROOT, 'bin/node'), [join(ROOT, file)], env)
}

async function start(
  command: string,
  options: readonly string[],
  env: Record<string, string>,
): Promise<Service> {
  const child = spawn(command, options, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { port, metricsPort } = await readPorts(child)
  return {
    pid: child.pid ?? 0,
    port,
    metricsPort,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function readPorts(child: ChildProcess): Promise<{ port: number; metricsPort: number | null }> {
  return new Promise((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer) => {
      text += chunk.toString()
      // Annals logs its addresses with `service.started`. The reference programs print one address.
      const line = /^(?:http:|.*"event":"service\.started").*\n/m.exec(text)?.[0]
      if (line === undefined) return
      // A worker has no port.
      const port = /(?:"url":"|^)http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1]
      const metricsPort = /"metricsUrl":"http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1]
      // Discards the rest of the log, which a long load would fill.
      child.stdout?.off('data', read).resume()
      resolve({ port: Number(port ?? 0), metricsPort: metricsPort ? Number(metricsPort) : null })
    }
    child.stdout?.on('data', read)
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}: ${text}`)),
    )
  })
}

/** The sum and count of a histogram so far, over all API processes. */
export async function readHistogram(
  service: Service,
  name: string,
): Promise<{ sum: number; count: number }> {
  if (service.metricsPort === null) return { sum: 0, count: 0 }
  const response = await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)
  const text = await response.text()
  const read = (part: string) =>
    Array.from(
      text.matchAll(new RegExp(`^${name}_${part}(?:\\{process="\\d+"\\})? (\\S+)$`, 'gm')),
      ([, value]) => Number(value),
    ).reduce((sum, value) => sum + value, 0)
  return { sum: read('sum'), count: read('count') }
}

/** The highest non-empty bucket of the number of tries. */
export async function readTriesMax(service: Service): Promise<number> {
  if (service.metricsPort === null) return 0
  const response = await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)
  const buckets = [
    ...(await response.text()).matchAll(
      /^annals_batch_try_count_bucket\{(.*)le="(\d+)"\} (\d+)$/gm,
    ),
  ].map(([, process = '', le, count]) => ({ process, le: Number(le), count: Number(count) }))
  const highest = [...Map.groupBy(buckets, ({ process }) => process).values()].map((own) => {
    const total = Math.max(...own.map(({ count }) => count))
    return total === 0
      ? 0
      : Math.min(...own.filter(({ count }) => count === total).map(({ le }) => le))
  })
  return Math.max(0, ...highest)
}

export function startAnnals(env: Record<string, string>, role = 'all'): Promise<Service> {
  return start(join(ROOT, 'bin/annals'), ['serve', '--role', role], {
    ANNALS_PORT: '0',
    ANNALS_METRICS_PORT: '0',
    ...env,
  })
}

/** Runs an `annals` command and returns its output. */
export function annals(env: Record<string, string>, ...options: string[]): string {
  return execFileSync(join(ROOT, 'bin/annals'), options, {
    env: { ...process.env, ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

/** Runs an `annals` command and returns the CPU time that it used. */
export function cpuSecondsOf(env: Record<string, string>, ...options: string[]): number {
  return timesOf(env, ...options).cpuSeconds
}

/** Runs an `annals` command and returns how long it took, and the CPU time of all its threads. */
export function timesOf(
  env: Record<string, string>,
  ...options: string[]
): { seconds: number; cpuSeconds: number } {
  // Node reports its own time when it exits, because a parent can't ask for that of one child.
  const report = `process.on('exit', () => process.stderr.write('cpuUsage ' + JSON.stringify(process.cpuUsage())))`
  const preload = `--import=data:text/javascript,${encodeURIComponent(report)}`
  const startedAtMs = performance.now()
  const { status, stdout, stderr } = spawnSync(join(ROOT, 'bin/annals'), options, {
    env: { ...process.env, ...env, NODE_OPTIONS: preload },
    encoding: 'utf8',
  })
  const seconds = (performance.now() - startedAtMs) / 1_000
  // Each thread reports the time of the whole process, the main thread last.
  const usage = [...stderr.matchAll(/cpuUsage (\{.*?\})/g)].at(-1)?.[1]
  if (status !== 0 || usage === undefined) throw new Error(`annals failed: ${stdout}${stderr}`)
  const { user, system }: { user: number; system: number } = JSON.parse(usage)
  return { seconds, cpuSeconds: (user + system) / 1e6 }
}

export function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'engine/cluster/postmaster.pid'), 'utf8').split('\n')[0])
}
