import assert from 'node:assert/strict'
import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { ENGINE_PORT } from '../../src/platform/engine/settings.ts'
import { ANNALS, type Outcome, runAnnals } from '../harness/app/annals-process.ts'
import { eventually } from '../harness/timing/eventually.ts'
import type { ServiceLog } from './service-log.ts'
import { SoakFolder } from './soak-folder.ts'

const PROBE = pathToFileURL(join(import.meta.dirname, 'probe.ts')).href
const START_MS_MAX = 60_000
const PROBE_MS_MAX = 5_000

/** The resources of the process right after a garbage collection. */
export type ProbeResult = {
  nonce: number
  rss: number
  heapUsed: number
  external: number
  /** The resources that keep the event loop alive, by kind. */
  resources: Record<string, number>
}

/** `bin/annals serve` with the embedded engine in its own folder. */
export class SoakService implements AsyncDisposable {
  readonly folder: SoakFolder
  readonly log: ServiceLog
  readonly #controlFolder = mkdtempSync(join(tmpdir(), 'annals-soak-'))
  readonly #controlFile = join(this.#controlFolder, 'control')
  readonly #env: Record<string, string>
  #child: ChildProcess | null = null
  #url = ''
  #metricsUrl = ''
  #nonce = 0
  #offsetMs = 0
  /** False from a signal that ends the service until it has restarted. */
  #isUp = false

  private constructor(folder: SoakFolder, log: ServiceLog) {
    this.folder = folder
    this.log = log
    this.#env = {
      ANNALS_DATA_DIR: folder.dataDir,
      ANNALS_PORT: '0',
      ANNALS_METRICS_PORT: '0',
      ANNALS_RATE_LIMITS: 'off',
      ANNALS_WEBHOOK_DESTINATIONS: 'any',
      ANNALS_LOG_LEVEL: 'info',
    }
    this.#writeControl()
  }

  static async start(log: ServiceLog): Promise<SoakService> {
    await using stack = new AsyncDisposableStack()
    const folder = stack.use(await SoakFolder.create())
    const service = stack.use(new SoakService(folder, log))
    await service.start()
    stack.move()
    return service
  }

  get url(): string {
    return this.#url
  }

  get metricsUrl(): string {
    return this.#metricsUrl
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  get isUp(): boolean {
    return this.#isUp
  }

  async start(): Promise<void> {
    const child = this.spawnCommand(['serve'], {
      NODE_OPTIONS: `--import=${PROBE}`,
      SOAK_CONTROL_FILE: this.#controlFile,
    })
    this.#child = child
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the service did not start')), START_MS_MAX)
      child.once('exit', (code) =>
        reject(new Error(`the service exited with ${code} during startup`)),
      )
      this.log.follow(child, (line) => {
        if (!this.#readStart(line)) return
        clearTimeout(timer)
        resolve()
      })
    })
    this.#isUp = true
  }

  /** `kill -9`; resolves when the process is gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Sends SIGTERM and resolves with the exit code and the duration. */
  async terminate(): Promise<{ code: number | null; durationMs: number }> {
    const startedAtMs = performance.now()
    const code = await this.#end('SIGTERM')
    return { code, durationMs: performance.now() - startedAtMs }
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  /** Sets the offset of the service's clock from the machine's. */
  async stepClock(offsetMs: number): Promise<void> {
    this.#offsetMs = offsetMs
    await this.probe()
  }

  /** Null if the process doesn't respond because it is stopped or was killed. */
  async probe(): Promise<ProbeResult | null> {
    this.#nonce += 1
    const nonce = this.#nonce
    this.#writeControl()
    // Until the process handles the signal, the signal would end it.
    if (!this.#isUp) return null
    this.signal('SIGUSR2')
    const read = (): ProbeResult => {
      const result: ProbeResult = JSON.parse(readFileSync(`${this.#controlFile}.result`, 'utf8'))
      assert.equal(result.nonce, nonce)
      return result
    }
    return await eventually(read, { timeoutMs: PROBE_MS_MAX }).catch(() => null)
  }

  /** The number of open file descriptors, or 0 if the system doesn't report it. */
  descriptorCount(): number {
    const folder = `/proc/${this.pid}/fd`
    return existsSync(folder) ? readdirSync(folder).length : 0
  }

  /** Runs a command on the same folder, as an operator would alongside the service. */
  async run(...args: string[]): Promise<Outcome> {
    return await runAnnals(args, this.#env, this.folder.within)
  }

  /** Starts a command, for a caller that kills it or reads its output. */
  spawnCommand(
    args: readonly string[],
    env: Record<string, string> = {},
  ): ChildProcessByStdio<null, Readable, Readable> {
    const [program = ANNALS, ...others] = [...this.folder.within, ANNALS, ...args]
    return spawn(program, others, {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH, ...this.#env, ...env },
    })
  }

  /** Runs a statement as the owner of the database. */
  async query<Row extends object>(statement: string, values: unknown[] = []): Promise<Row[]> {
    const client = new Client({
      host: this.folder.path('engine/run'),
      port: ENGINE_PORT,
      user: 'annals',
      password: readFileSync(this.folder.path('engine.password'), 'utf8').trim(),
      database: 'annals',
      application_name: 'soak',
      connectionTimeoutMillis: 10_000,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query<Row>(statement, values)).rows
    } finally {
      await client.end()
    }
  }

  #readStart(line: string): boolean {
    const isStart = line.includes('"event":"service.started"')
    if (isStart) {
      const { url, metricsUrl }: { url: string; metricsUrl: string } = JSON.parse(line)
      this.#url = url
      this.#metricsUrl = metricsUrl
    }
    return isStart
  }

  async #end(name: NodeJS.Signals): Promise<number | null> {
    this.#isUp = false
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return null
    const exited = once(child, 'exit')
    child.kill(name)
    const [code]: unknown[] = await exited
    return typeof code === 'number' ? code : null
  }

  #writeControl(): void {
    writeFileSync(
      this.#controlFile,
      JSON.stringify({ nonce: this.#nonce, offsetMs: this.#offsetMs }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await this.folder[Symbol.asyncDispose]()
    rmSync(this.#controlFolder, { recursive: true, force: true })
  }
}
