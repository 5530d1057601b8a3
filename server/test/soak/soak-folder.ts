import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'
import { EngineFolder, IS_ROOT, isRunning, processTree } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { SmallDisk } from '../harness/app/small-disk.ts'

/** Enough for PostgreSQL's 2 GB of write-ahead log and the events of half an hour. */
const DISK_BYTES_MAX = 6 * 2 ** 30

/**
 * The data folder of the service. If the machine allows it, the folder is on a separate in-memory file
 * system that can be filled. PostgreSQL refuses to run as root, even in a user namespace, so only the
 * real root can mount such a disk.
 */
export class SoakFolder implements AsyncDisposable {
  readonly #disk: SmallDisk | null
  readonly #plain: EngineFolder | null
  readonly #diskBytes: number

  private constructor(disk: SmallDisk | null, diskBytes: number) {
    this.#disk = disk
    this.#diskBytes = diskBytes
    this.#plain = disk ? null : new EngineFolder()
  }

  static async create(): Promise<SoakFolder> {
    if (!IS_ROOT) return new SoakFolder(null, 0)
    const diskBytes = Math.min(DISK_BYTES_MAX, Math.floor(freemem() / 2))
    const disk = await SmallDisk.make(diskBytes)
    if (disk.code === 'ENOSPC') return new SoakFolder(disk, diskBytes)
    await disk[Symbol.asyncDispose]()
    return new SoakFolder(null, 0)
  }

  get canFill(): boolean {
    return this.#disk !== null
  }

  /** The path of the folder for the service. */
  get dataDir(): string {
    return this.#plain?.dataDir ?? join(this.#disk?.folder ?? '', 'data')
  }

  /** The command prefix for the service and its commands. */
  get within(): string[] {
    return this.#disk?.within ?? []
  }

  /** The path of a file in the data folder for this process. */
  path(...names: string[]): string {
    return this.#plain?.path(...names) ?? join(this.#disk?.outside ?? '', 'data', ...names)
  }

  postmasterPid(): number {
    const file = readFileSync(this.path('engine/cluster/postmaster.pid'), 'utf8')
    return Number(file.split('\n')[0])
  }

  hasPostmaster(): boolean {
    return existsSync(this.path('engine/cluster/postmaster.pid'))
  }

  /** PostgreSQL's processes. Empty while it is down. */
  postgresPids(): number[] {
    return this.hasPostmaster() ? processTree(this.postmasterPid()) : []
  }

  async fill(): Promise<void> {
    await this.#disk?.fill()
  }

  async makeRoom(): Promise<void> {
    await this.#disk?.growTo(this.#diskBytes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pids = this.postgresPids()
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    await eventually(() => assert.deepEqual(pids.filter(isRunning), []))
    await this.#plain?.[Symbol.asyncDispose]()
    await this.#disk?.[Symbol.asyncDispose]()
  }
}
