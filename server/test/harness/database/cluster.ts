import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { startEngine } from '../../../src/platform/engine/embedded-postgres.ts'
import type { EngineSettings } from '../../../src/platform/engine/settings.ts'
import { eventually } from '../timing/eventually.ts'
import { EngineFolder, listRunning, processTree, query } from './engine.ts'
import { copyRunning } from './standby.ts'

type RunningEngine = Awaited<ReturnType<typeof startEngine>>

const SETTINGS: EngineSettings = {
  shared_buffers: '16MB',
  max_connections: '80',
  // A standby that was copied under load finds all it needs.
  wal_keep_size: '256MB',
}

/** A server of a cluster, whose processes a test kills or freezes. */
export class ClusterServer implements AsyncDisposable {
  readonly #folder: EngineFolder
  readonly #engine: RunningEngine

  private constructor(folder: EngineFolder, engine: RunningEngine) {
    this.#folder = folder
    this.#engine = engine
  }

  /** A primary with the migrated database that `npm test` prepared. */
  static async startPrimary(): Promise<ClusterServer> {
    return await ClusterServer.#start(EngineFolder.prepared(), {})
  }

  /**
   * A standby that streams from the primary, which identifies it by this name. It starts from a base backup of
   * the running primary.
   */
  static async startStandby(
    primary: ClusterServer,
    name: string,
    { settings = {}, folder = new EngineFolder() }: StandbyOptions = {},
  ): Promise<ClusterServer> {
    const { connection } = primary
    await copyRunning(connection, primary.#folder, folder, { signalFile: 'standby.signal' })
    const { host, port, user, password } = connection
    const login = { host, port: String(port), user, password, application_name: name }
    const address = Object.entries(login).map(([key, value]) => `${key}='${value}'`)
    const standby = await ClusterServer.#start(folder, {
      primary_conninfo: address.join(' '),
      ...settings,
    })
    await eventually(async () => {
      const rows = await query(
        connection,
        `select from pg_stat_replication where application_name = '${name}' and state = 'streaming'`,
      )
      assert.equal(rows.length, 1)
    })
    return standby
  }

  static async #start(folder: EngineFolder, settings: EngineSettings): Promise<ClusterServer> {
    const { dataDir } = folder
    const started = { dataDir, exclusive: false, settings: { ...SETTINGS, ...settings } }
    return new ClusterServer(folder, await startEngine(started))
  }

  get connection(): RunningEngine['connection'] {
    return this.#engine.connection
  }

  /** Ends all of its processes, as if its machine lost power. */
  async kill(): Promise<void> {
    const pids = this.#signal('SIGKILL')
    await eventually(() => assert.deepEqual(listRunning(pids), []))
    await this.#engine[Symbol.asyncDispose]()
  }

  /** Stops all of its processes. Its connections stay open, and new ones are accepted by the kernel alone. */
  freeze(): void {
    this.#signal('SIGSTOP')
  }

  thaw(): void {
    this.#signal('SIGCONT')
  }

  #signal(name: NodeJS.Signals): number[] {
    const pids = processTree(this.#folder.postmasterPid())
    for (const pid of pids) process.kill(pid, name)
    return pids
  }

  /** Deletes the data, but keeps the folder, so that another server can have the same address. */
  clear(): EngineFolder {
    rmSync(this.#folder.dataDir, { recursive: true })
    return this.#folder
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#engine[Symbol.asyncDispose]()
    await this.#folder[Symbol.asyncDispose]()
  }
}

type StandbyOptions = { settings?: EngineSettings; folder?: EngineFolder }
