import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Client } from 'pg'

import type { EngineConnection } from '../../../src/platform/engine/presence.ts'
import { eventually } from '../timing/eventually.ts'

/** The tests run many engines in parallel. */
export const SMALL_ENGINE = { shared_buffers: '16MB', max_connections: '20' } as const

export const HOLDER = join(import.meta.dirname, 'engine-holder.ts')
export const IS_ROOT = process.getuid?.() === 0

/** A folder for one test. Stops an engine that the test left running in it. */
export class EngineFolder implements AsyncDisposable {
  readonly #root: string
  readonly dataDir: string

  /** `mode` applies to the parent of the data folder: 0700 is a private home. */
  constructor({ mode = 0o711, name = 'data' }: { mode?: number; name?: string } = {}) {
    const parent = process.env.TEST_ENGINES ?? tmpdir()
    this.#root = fs.realpathSync(fs.mkdtempSync(join(parent, 'annals-test-')))
    fs.chmodSync(this.#root, mode)
    this.dataDir = join(this.#root, name)
  }

  /** With the migrated database that `npm test` prepared: creating one takes seconds. */
  static prepared(): EngineFolder {
    const { TEST_DATA } = process.env
    assert(TEST_DATA, 'run tests with: npm test -- <file>')
    const folder = new EngineFolder()
    folder.copy(TEST_DATA)
    return folder
  }

  /** Copies the data folder of a stopped engine. */
  copy(dataDir: string): void {
    execFileSync('cp', ['-a', dataDir, this.dataDir])
  }

  /** Makes another user the owner of the data folder. */
  giveTo(uid: number, gid: number): void {
    fs.mkdirSync(this.dataDir)
    fs.chownSync(this.dataDir, uid, gid)
  }

  path(...names: string[]): string {
    return join(this.dataDir, ...names)
  }

  postmasterPid(): number {
    return Number(
      fs.readFileSync(this.path('engine/cluster/postmaster.pid'), 'utf8').split('\n')[0],
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (fs.existsSync(this.path('engine/cluster/postmaster.pid'))) {
      const pids = processTree(this.postmasterPid())
      // Only if it is really PostgreSQL, because the pid file can be made up.
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      await eventually(() => assert.deepEqual(listRunning(pids), []))
    }
    fs.rmSync(this.#root, { recursive: true, force: true })
  }
}

/** A separate process that uses the engine. See engine-holder.ts. */
export class EngineHolder implements AsyncDisposable {
  readonly pid: number
  readonly #child
  readonly #exited: Promise<unknown>
  readonly #result: Promise<unknown>

  constructor(dataDir: string, role: 'service' | 'command', user?: { uid: number; gid: number }) {
    this.#child = spawn(process.execPath, [HOLDER, dataDir, role], {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'inherit'],
      ...user,
    })
    assert(this.#child.pid !== undefined)
    this.pid = this.#child.pid
    this.#exited = once(this.#child, 'exit')
    this.#result = readResult(createInterface({ input: this.#child.stdout }))
  }

  async ready(): Promise<EngineConnection> {
    return parseConnection(await this.#result)
  }

  async refusal(): Promise<string> {
    return parseRefusal(await this.#result)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end()
    await this.#exited
  }
}

export async function query(
  connection: EngineConnection & { options?: string },
  text: string,
): Promise<Record<string, unknown>[]> {
  const client = new Client({ ...connection, connectionTimeoutMillis: 30_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

/** The running postmaster and its children. Empty if `pid` is not PostgreSQL's. */
export function processTree(pid: number): number[] {
  const columns = 'pid=,ppid=,stat=,command='
  const table = execFileSync('ps', ['-ww', '-axo', columns], { encoding: 'utf8' })
  return table
    .split('\n')
    .map((line) => /^ *(\d+) +(\d+) +(\w)\S* (.*)$/.exec(line))
    .filter((row) => row !== null && (Number(row[1]) === pid || Number(row[2]) === pid))
    .filter((row) => row?.[3] !== 'Z' && row?.[4]?.includes('postgres'))
    .map((row) => Number(row?.[1]))
}

/** Those of the processes that are running, found in one step because a `ps` takes a while. */
export function listRunning(pids: readonly number[]): number[] {
  const columns = ['-o', 'pid=,stat=', '-p', pids.join(',')]
  // It fails if it finds none.
  const { stdout } = spawnSync('ps', columns, { encoding: 'utf8' })
  return Array.from(stdout.matchAll(/^ *(\d+) +([^Z\s])/gm), ([, pid]) => Number(pid))
}

/** False for a zombie, which the init process will reap. */
export function isRunning(pid: number): boolean {
  try {
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    return !state.trim().startsWith('Z')
  } catch {
    return false
  }
}

async function readResult(lines: AsyncIterable<string>): Promise<unknown> {
  for await (const line of lines) return JSON.parse(line)
  return undefined
}

function parseConnection(result: unknown): EngineConnection {
  assert(isObject(result) && isObject(result['connection']), JSON.stringify(result))
  const { host, port, user, password, database } = result['connection']
  assert(typeof host === 'string' && typeof user === 'string' && typeof password === 'string')
  assert(typeof port === 'number' && typeof database === 'string')
  return { host, port, user, password, database }
}

export function parseRefusal(result: unknown): string {
  assert(isObject(result) && typeof result['refusal'] === 'string', JSON.stringify(result))
  return result['refusal']
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
