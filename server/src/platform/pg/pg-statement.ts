import type { Client, Connection, Submittable } from 'pg'

export type Statement = { name: string; text: string }

/** A row of a result, with every column as text. */
type TextRow = readonly (string | null)[]

/**
 * Runs a prepared statement with the messages of a BindWriter. The messages are sent without copying, so
 * they must not change until this settles.
 */
export function runStatement(
  client: Client,
  statement: Statement,
  messages: Buffer,
): Promise<TextRow[]> {
  return new Promise((resolve, reject) => {
    client.query(new StatementRun(statement, messages, { resolve, reject }))
  })
}

type Run = {
  resolve: (rows: TextRow[]) => void
  reject: (error: unknown) => void
}

/** The statements that the server has parsed, per connection. */
const parsed = new WeakMap<Connection, Set<string>>()

/**
 * The interface that `pg` expects of a query that handles the protocol itself. It calls the handlers by name.
 */
class StatementRun implements Submittable {
  readonly #statement: Statement
  readonly #messages: Buffer
  readonly #run: Run
  readonly #rows: TextRow[] = []
  #stopListening: () => void = () => {}

  constructor(statement: Statement, messages: Buffer, run: Run) {
    this.#statement = statement
    this.#messages = messages
    this.#run = run
  }

  submit(connection: Connection): void {
    const known = parsed.get(connection) ?? new Set()
    parsed.set(connection, known)
    if (!known.has(this.#statement.name)) this.#parse(connection, known)
    connection.stream.write(this.#messages)
  }

  /**
   * The statement counts as prepared as soon as the server reports it, even if its execution fails: the
   * server refuses to parse the same name twice.
   */
  #parse(connection: Connection, known: Set<string>): void {
    const note = () => known.add(this.#statement.name)
    connection.once('parseComplete', note)
    this.#stopListening = () => connection.off('parseComplete', note)
    connection.parse({ ...this.#statement, types: [] }, true)
  }

  handleDataRow({ fields }: { fields: TextRow }): void {
    this.#rows.push(fields)
  }

  /** Not the end: a statement outside a transaction commits after this, and that can still fail. */
  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#stopListening()
    this.#run.resolve(this.#rows)
  }

  handleError(error: unknown): void {
    this.#stopListening()
    this.#run.reject(error)
  }
}
