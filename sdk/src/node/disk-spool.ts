import { mkdirSync } from 'node:fs'
import type { Spool } from '../recorder/queue.ts'
import { DiskQueue } from './disk-queue.ts'
import { lockFolder } from './folder-owner.ts'

export type DiskSpoolOptions = {
  /** A folder of this process alone, on a local disk. It is created if it doesn't exist. */
  folder: string
  /** How much disk space the events may take. Further events are dropped. Default: 256 MiB. */
  bytesMax?: number
}

const BYTES_MAX = 268_435_456

/**
 * Keeps the events of a recorder on disk until the service has them, so that they survive a crash of the
 * process, and an outage of the service that would fill the memory. The next process with the same folder
 * sends what is left. The files are not synced: a power failure can lose the last seconds.
 *
 * ```ts
 * const recorder = annals.recorder({ spool: diskSpool({ folder: '/var/spool/shop-annals' }) })
 * ```
 */
export function diskSpool({ folder, bytesMax = BYTES_MAX }: DiskSpoolOptions): Spool {
  return {
    open: (options) => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const release = lockFolder(folder)
      try {
        return new DiskQueue({ ...options, folder, bytesMax, release })
      } catch (error) {
        release()
        throw error
      }
    },
  }
}
