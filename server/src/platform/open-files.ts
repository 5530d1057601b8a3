/** Enough for any node; each connection also costs memory. */
const CONNECTIONS_MAX = 10_000
/**
 * Descriptors that clients can't use: about 30 for the database, 50 for the storage, 16 for the metrics
 * port, 50 for Node, threads and files. The rest is for webhooks, with up to 2,048 deliveries per node, of
 * which about half are being sent.
 */
const RESERVED_FILES = 2_048

/**
 * How many client connections a process can have so that it can still open what it needs itself. If the
 * reserve doesn't fit, clients get half of the limit, and `isReserveMet` is false.
 */
export function connectionLimit(openFilesMax: number): {
  connectionsMax: number
  isReserveMet: boolean
} {
  const half = Math.floor(openFilesMax / 2)
  const rest = openFilesMax - RESERVED_FILES
  const connectionsMax = Math.min(CONNECTIONS_MAX, Math.max(half, rest))
  return { connectionsMax, isReserveMet: rest >= half }
}

/**
 * The limit on open files of this process, which Node raises to the hard limit when it starts. Infinity if
 * there is none, or if the system doesn't report it.
 */
export function readOpenFilesMax(): number {
  const { report } = process
  // Otherwise the report looks up the host name of every open connection. The types lack this option.
  const wasExcluded: unknown = Reflect.get(report, 'excludeNetwork')
  Reflect.set(report, 'excludeNetwork', true)
  const limits = fieldOf(report.getReport(), 'userLimits')
  Reflect.set(report, 'excludeNetwork', wasExcluded)
  const soft = fieldOf(fieldOf(limits, 'open_files'), 'soft')
  return typeof soft === 'number' ? soft : Infinity
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
