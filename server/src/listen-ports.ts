import type { Config } from './config.ts'
import { refuseOccupiedPort } from './platform/refuse-occupied-port.ts'
import type { ServeRole } from './serve-role.ts'

/** Runs before the engine starts, so that a startup that can't succeed leaves the data folder untouched. */
export async function refuseOccupiedPorts(
  { host, port, metricsPort }: Config,
  role: ServeRole,
): Promise<void> {
  if (role !== 'worker') await refuseOccupiedPort({ host, port }, adviceOn('ANNALS_PORT'))
  const metricsAt = { host, port: metricsPort ?? 0 }
  await refuseOccupiedPort(metricsAt, adviceOn('ANNALS_METRICS_PORT'))
}

const adviceOn = (variable: string) => ({
  port: `set ${variable}`,
  address: `Set ANNALS_HOST and ${variable}.`,
})
