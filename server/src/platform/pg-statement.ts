import type { Client, Connection, Submittable } from 'pg'

export type Statement = { name: string; text: string }

/** A row of an answer: every column as text. */
export type TextRow = readonly (string | null)[]

/** Which statements a connection has prepared. */
const prepared = new WeakMap<Client, Set<string>>()

/**
 * Runs a prepared statement with messages that a BindWriter made. The messages are sent as they
 * are; they must stay untouched until this settles.
 */
export function runStatement(
  client: Client,
  statement: Statement,
  messages: Buffer,
): Promise<TextRow[]> {
  return new Promise((resolve, reject) => {
    const known = prepared.get(client) ?? new Set()
    prepared.set(client, known)
    client.query(
      new StatementRun(statement, messages, {
        isPrepared: known.has(statement.name),
        onPrepared: () => known.add(statement.name),
        resolve,
        reject,
      }),
    )
  })
}

type Run = {
  isPrepared: boolean
  onPrepared: () => void
  resolve: (rows: TextRow[]) => void
  reject: (error: unknown) => void
}

/** What `pg` expects of a query that speaks the protocol itself; it calls the handlers by name. */
class StatementRun implements Submittable {
  readonly #statement: Statement
  readonly #messages: Buffer
  readonly #run: Run
  readonly #rows: TextRow[] = []

  constructor(statement: Statement, messages: Buffer, run: Run) {
    this.#statement = statement
    this.#messages = messages
    this.#run = run
  }

  submit(connection: Connection): void {
    if (!this.#run.isPrepared) connection.parse({ ...this.#statement, types: [] }, true)
    connection.stream.write(this.#messages)
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    this.#rows.push(fields)
  }

  handleCommandComplete(): void {
    this.#run.onPrepared()
  }

  handleReadyForQuery(): void {
    this.#run.resolve(this.#rows)
  }

  handleError(error: unknown): void {
    this.#run.reject(error)
  }
}
