import { rssBytesOf } from '../../../bench/lib/processes.ts'
import type { SoakService } from './soak-service.ts'

/** The resources of the service at one time, after a garbage collection. */
export type Sample = {
  atSeconds: number
  pid: number
  rssMb: number
  heapMb: number
  descriptors: number
  timers: number
}

const MEGABYTE = 2 ** 20

/** Samples the service from outside, and the memory of the soak test itself. */
export class Monitor {
  readonly samples: Sample[] = []
  driverRssMbMax = 0
  readonly #service: SoakService
  readonly #startedAtMs = performance.now()

  constructor(service: SoakService) {
    this.#service = service
  }

  /** Null if the service doesn't respond. */
  async sample(): Promise<Sample | null> {
    const { pid } = this.#service
    this.driverRssMbMax = Math.max(this.driverRssMbMax, process.memoryUsage.rss() / MEGABYTE)
    // Before the garbage collection: the memory that the machine has to provide.
    const rssMb = rssBytesOf(pid) / MEGABYTE
    const probe = await this.#service.probe()
    if (!probe || pid !== this.#service.pid) return null
    const sample = {
      atSeconds: Math.round((performance.now() - this.#startedAtMs) / 1_000),
      pid,
      rssMb,
      heapMb: (probe.heapUsed + probe.external) / MEGABYTE,
      descriptors: this.#service.descriptorCount(),
      timers: probe.resources['Timeout'] ?? 0,
    }
    this.samples.push(sample)
    return sample
  }
}
