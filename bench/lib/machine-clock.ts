/**
 * Milliseconds since the machine started, with nanosecond resolution. All processes share this clock and
 * nothing adjusts it, so one process can time what another started.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
