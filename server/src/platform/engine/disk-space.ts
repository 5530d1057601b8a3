import { statfs } from 'node:fs/promises'
import type { Logger } from '../logger.ts'
import { Loop } from '../scheduling/loop.ts'

const CHECK_EVERY_MS = 1_000
const RESERVE_SHARE = 0.1
const RESERVE_BYTES_MAX = 1_024 ** 3
/** More than the reserve must be free again, so that the service doesn't alternate between the two states. */
const ENOUGH_FACTOR = 1.25

type DiskSpaceOptions = {
  folder: string
  logger: Logger
  onChecked: (freeBytes: number) => void
}

/**
 * Watches the disk of the embedded engine. PostgreSQL stops if it can't extend its write-ahead log, and can't start
 * again until something is deleted. So events are refused while there is still a reserve, and reads still work.
 */
export class DiskSpace implements AsyncDisposable {
  readonly #folder: string
  readonly #logger: Logger
  readonly #onChecked: (freeBytes: number) => void
  readonly #loop: Loop
  #isLow = false

  constructor({ folder, logger, onChecked }: DiskSpaceOptions) {
    this.#folder = folder
    this.#logger = logger
    this.#onChecked = onChecked
    const run = () => this.#check()
    this.#loop = new Loop({ name: 'disk-space', everyMs: CHECK_EVERY_MS, logger, run })
  }

  get isLow(): boolean {
    return this.#isLow
  }

  async #check(): Promise<void> {
    const { freeBytes, reserveBytes } = await readDiskSpace(this.#folder)
    const isLow = freeBytes < reserveBytes * (this.#isLow ? ENOUGH_FACTOR : 1)
    if (isLow && !this.#isLow) {
      this.#logger.error({ event: 'disk.low', freeBytes, reserveBytes })
    }
    if (!isLow && this.#isLow) this.#logger.info({ event: 'disk.recovered', freeBytes })
    this.#isLow = isLow
    this.#onChecked(freeBytes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]()
  }
}

/** How much of the disk of a folder is free, and how much must be. */
export async function readDiskSpace(
  folder: string,
): Promise<{ freeBytes: number; reserveBytes: number }> {
  const { blocks, bavail, bsize } = await statfs(folder)
  const reserveBytes = Math.min(RESERVE_BYTES_MAX, blocks * bsize * RESERVE_SHARE)
  return { freeBytes: bavail * bsize, reserveBytes }
}
