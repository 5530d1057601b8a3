import { rssBytesOf } from '../../../bench/lib/processes.ts'
import type { SoakService } from './soak-service.ts'

/** What the service held at a moment; after a garbage collection. */
export type Sample = {
  atSeconds: number
  pid: number
  rssMb: number
  heapMb: number
  descriptors: number
  timers: number
}

const MEGABYTE = 2 ** 20

/** Samples the service from beside it, and the soak's own memory. */
export class Monitor {
  readonly samples: Sample[] = []
  driverRssMbMax = 0
  readonly #service: SoakService
  readonly #startedAtMs = performance.now()

  constructor(service: SoakService) {
    this.#service = service
  }

  /** Null when the service does not answer now. */
  async sample(): Promise<Sample | null> {
    const { pid } = this.#service
    this.driverRssMbMax = Math.max(this.driverRssMbMax, process.memoryUsage.rss() / MEGABYTE)
    // Before the collection: what the machine has to have for it.
    const rssMb = rssBytesOf(pid) / MEGABYTE
    const answer = await this.#service.probe()
    if (!answer || pid !== this.#service.pid) return null
    const sample = {
      atSeconds: Math.round((performance.now() - this.#startedAtMs) / 1_000),
      pid,
      rssMb,
      heapMb: (answer.heapUsed + answer.external) / MEGABYTE,
      descriptors: this.#service.descriptorCount(),
      timers: answer.resources['Timeout'] ?? 0,
    }
    this.samples.push(sample)
    return sample
  }
}
