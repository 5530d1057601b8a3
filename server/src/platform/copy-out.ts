import type { CompiledQuery } from 'kysely'
import { escapeLiteral, type Pool } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { withDeadline } from './deadline.ts'

/** The server ends a statement by itself before; this is for a server that cannot tell us. */
const ANSWER_MS_MAX = 35_000

/** More came than the caller has room for. The connection is gone with it. */
export class CopyTooLargeError extends Error {
  override name = 'CopyTooLargeError'
}

/**
 * The rows of a query as `copy … to stdout` prints them, in PostgreSQL's text format: read whole, so
 * that no connection is held while somebody slow takes them. It is twice as fast as rows one by one.
 */
export async function copyOut(
  pool: Pool,
  query: CompiledQuery,
  { bytesMax }: { bytesMax: number },
): Promise<Buffer> {
  const client = await pool.connect()
  let isSpoiled = true
  try {
    const stream = client.query(copyTo(`copy (${withLiterals(query)}) to stdout`))
    const chunks: Buffer[] = []
    let bytes = 0
    const reading = (async () => {
      for await (const chunk of stream) {
        bytes += chunk.length
        // There is no way to stop a copy but to hang up.
        if (bytes > bytesMax) throw new CopyTooLargeError(`a copy of more than ${bytesMax} bytes`)
        chunks.push(chunk)
      }
    })()
    await withDeadline(reading, {
      timeoutMs: ANSWER_MS_MAX,
      late: () => new Error('Connection terminated: the database does not answer'),
    })
    isSpoiled = false
    return Buffer.concat(chunks, bytes)
  } finally {
    client.release(isSpoiled)
  }
}

/** `copy` takes no parameters: this is the one place that writes values into a statement. */
function withLiterals({ sql, parameters }: CompiledQuery): string {
  return sql.replaceAll(/\$(\d+)/g, (_, number: string) => literal(parameters[Number(number) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number') return String(value)
  // Not as its text: PostgreSQL spells the years before 1 in another way.
  if (value instanceof Date) {
    return `(timestamptz 'epoch' + ${value.getTime()} * interval '1 millisecond')`
  }
  if (typeof value === 'string') return escapeLiteral(value)
  throw new TypeError('a value that has no literal')
}

const ESCAPES: Record<string, string> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}

/** The columns of a line of the text format; null where it says `\N`. */
export function splitCopyLine(line: string): (string | null)[] {
  const fields: (string | null)[] = line.split('\t')
  if (!line.includes('\\')) return fields
  return fields.map((field) => {
    if (field === '\\N') return null
    return field?.includes('\\') === true
      ? field.replaceAll(/\\(.)/g, (_, code: string) => ESCAPES[code] ?? code)
      : field
  })
}
