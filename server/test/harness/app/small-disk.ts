import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/**
 * The process that keeps the disk mounted, its output, and the command that runs others in its
 * namespace.
 */
type Mount = {
  holder: ChildProcessByStdio<Writable, Readable, null>
  lines: AsyncIterator<string>
  within: string[]
}

/** Mounting works as root, or else in a user namespace. */
const NAMESPACES = [
  { unshare: ['--mount', '--propagation', 'private'], nsenter: ['--mount'] },
  {
    unshare: ['--user', '--map-root-user', '--mount', '--propagation', 'private'],
    nsenter: ['--user', '--preserve-credentials', '--mount'],
  },
] as const

/** Keeps the disk mounted while its standard input is open. Each line sets a new size. */
const HOLD = `
mount -t tmpfs -o "size=$2" none "$1" && echo held || exit 1
while read -r size; do
  mount -o "remount,size=$size" none "$1" 2>/dev/null && echo resized || echo refused
done`

const BLOCK_BYTES = 512
/** A completely full disk can't be resized while a program still writes to it. */
const SPARE_BYTES = 262_144
const FILL_TRIES_MAX = 50

/**
 * A folder on a disk of this size, for programs that run `within` it. It is an in-memory file
 * system that only they see. If the machine doesn't allow that, their file size is limited instead,
 * which fails the same writes with another code.
 */
export class SmallDisk implements AsyncDisposable {
  readonly folder: string
  /** The system error when the disk is full. */
  readonly code: 'ENOSPC' | 'EFBIG'
  readonly #mount: Mount | null
  #bytes: number

  private constructor(folder: string, bytes: number, mount: Mount | null) {
    this.folder = folder
    this.code = mount === null ? 'EFBIG' : 'ENOSPC'
    this.#bytes = bytes
    this.#mount = mount
  }

  static async make(bytes: number): Promise<SmallDisk> {
    const folder = mkdtempSync(join(tmpdir(), 'annals-test-'))
    for (const { unshare, nsenter } of NAMESPACES) {
      if (spawnSync('unshare', [...unshare, 'true']).status !== 0) continue
      const shell = ['/bin/sh', '-c', HOLD, 'sh', folder, String(bytes)]
      const holder = spawn('unshare', [...unshare, '--', ...shell], {
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      const lines = createInterface({ input: holder.stdout })[Symbol.asyncIterator]()
      const within = ['nsenter', '--target', String(holder.pid), ...nsenter, '--']
      if ((await lines.next()).value === 'held') {
        return new SmallDisk(folder, bytes, { holder, lines, within })
      }
    }
    return new SmallDisk(folder, bytes, null)
  }

  /** The command prefix for a program. */
  get within(): string[] {
    if (this.#mount) return this.#mount.within
    const blocks = String(Math.floor(this.#bytes / BLOCK_BYTES))
    return ['/bin/sh', '-c', 'ulimit -f "$1" && shift && exec "$@"', 'sh', blocks]
  }

  async growTo(bytes: number): Promise<void> {
    this.#bytes = bytes
    if (this.#mount) assert(await this.#resize(this.#mount, bytes))
  }

  /** Shrinks the disk to its used size and these bytes, until `growTo`. */
  async fill(spareBytes = SPARE_BYTES): Promise<void> {
    assert(this.#mount, 'only a mounted disk can be filled')
    for (let tries = 0; tries < FILL_TRIES_MAX; tries += 1) {
      const { blocks, bfree, bsize } = statfsSync(this.outside)
      if (await this.#resize(this.#mount, (blocks - bfree) * bsize + spareBytes)) return
    }
    throw new Error('the disk could not be filled: programs write faster than it shrinks')
  }

  /** The path of the folder for programs that don't run `within`. */
  get outside(): string {
    return this.#mount ? join(`/proc/${this.#mount.holder.pid}/root`, this.folder) : this.folder
  }

  /** False if more than that is in use. */
  async #resize({ holder, lines }: Mount, bytes: number): Promise<boolean> {
    holder.stdin.write(`${bytes}\n`)
    return (await lines.next()).value === 'resized'
  }

  /** Every file on the disk, with its size. */
  files(): { name: string; bytes: number }[] {
    const root = this.outside
    return readdirSync(root, { recursive: true, encoding: 'utf8' })
      .map((name) => ({ name, stats: statSync(join(root, name)) }))
      .filter(({ stats }) => stats.isFile())
      .map(({ name, stats }) => ({ name, bytes: stats.size }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#mount) {
      const { holder } = this.#mount
      const ended = once(holder, 'exit')
      holder.stdin.end()
      await ended
    }
    rmSync(this.folder, { recursive: true, force: true })
  }
}
