/**
 * Milliseconds since the machine started, to the nanosecond. All processes of a machine read the same
 * clock, and nobody sets it: what one process began can be timed by another.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
