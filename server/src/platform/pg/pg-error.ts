import { DatabaseError } from 'pg'
import { UnconfirmedCommitError } from './confirmed-commit.ts'

/** The SQLSTATEs that the program distinguishes, by name. */
export const SQLSTATE = {
  UNIQUE_VIOLATION: '23505',
  CHECK_VIOLATION: '23514',
  UNDEFINED_TABLE: '42P01',
  SERIALIZATION_FAILURE: '40001',
  DEADLOCK_DETECTED: '40P01',
  DISK_FULL: '53100',
  TOO_MANY_CONNECTIONS: '53300',
  CONFIGURATION_LIMIT_EXCEEDED: '53400',
  READ_ONLY: '25006',
  QUERY_CANCELED: '57014',
  LOCK_NOT_AVAILABLE: '55P03',
  CONNECTION_FAILED: '08001',
  CONNECTION_REJECTED: '08004',
  CANNOT_CONNECT_NOW: '57P03',
} as const

/** The code of a database error or of the underlying socket error; null for anything else. */
export function sqlStateOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/** The quotation marks of the languages that PostgreSQL writes its messages in. */
const QUOTED_NAME = /["'«»„“”‘’「]\s*([\w.]+)\s*["'«»„“”‘’」]/

/** The table that a statement names and the database doesn't have. Only the message contains its name. */
export function missingTableOf(error: unknown): string | null {
  if (!(error instanceof DatabaseError) || error.code !== SQLSTATE.UNDEFINED_TABLE) return null
  const name = QUOTED_NAME.exec(error.message)?.[1]
  return name?.split('.').at(-1) ?? 'unknown'
}

/** A host name with several addresses fails with an AggregateError, whose own message is empty. */
export function messageOf(error: unknown): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error ? first.message : String(first)
}

/**
 * True if a partition was created for a row that was about to go to the default partition: a retry stores
 * it there. The SQLSTATE is that of a violated check constraint, but that error would name its constraint.
 */
export function isReroute(error: unknown): boolean {
  const isCheck = error instanceof DatabaseError && error.code === SQLSTATE.CHECK_VIOLATION
  return isCheck && error.constraint === undefined
}

const SOCKET_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/**
 * SQLSTATEs of a server that accepts no connections or no writes: classes 08 (connection) and 53 (full
 * disk, out of memory, too many connections), 57P01 to 57P05 (shutting down, starting, dropped), a
 * read-only server and an I/O error. Our own errors have such codes too. The whole code is matched, because
 * other libraries use `code` for other purposes.
 */
const OUTAGE_SQLSTATE = /^((08|53)[0-9A-Z]{3}|57P\d\d|25006|58030)$/

/**
 * SQLSTATEs of a statement that failed but may succeed next time: class 40 (deadlock, conflict on a
 * standby), a canceled statement, and timeouts of a transaction or a lock.
 */
const RETRYABLE_SQLSTATE = /^(40[0-9A-Z]{3}|57014|25P03|25P04|55P03)$/

/** Errors that `pg` throws without a code when a connection breaks or can't be opened in time. */
const OUTAGE_MESSAGES =
  /Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|not queryable|query_wait_timeout/

/**
 * True if the server itself rejected a statement or, because it is full, the connection. False for a broken
 * connection and for a server that is shutting down or starting: those say nothing about the next connection.
 */
export function isRejection(error: unknown): boolean {
  // For a list of servers, the error of a full server is only the cause, but its code is kept.
  if (sqlStateOf(error) === SQLSTATE.TOO_MANY_CONNECTIONS) return true
  return error instanceof DatabaseError && !/^(08|57P)/.test(error.code ?? '')
}

/** True if the database is unreachable, or accepts no writes, for all callers. */
export function isOutage(error: unknown): boolean {
  const code = sqlStateOf(error) ?? ''
  if (SOCKET_CODES.has(code) || OUTAGE_SQLSTATE.test(code)) return true
  return error instanceof Error && OUTAGE_MESSAGES.test(error.message)
}

/** True if this process, or the whole machine, can't open another file or socket. */
export function isOutOfDescriptors(error: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes(sqlStateOf(error) ?? '')
}

/** True if the same call may succeed later without any change by the caller. */
export function isRetryable(error: unknown): boolean {
  if (RETRYABLE_SQLSTATE.test(sqlStateOf(error) ?? '')) return true
  return error instanceof UnconfirmedCommitError || isOutage(error)
}
