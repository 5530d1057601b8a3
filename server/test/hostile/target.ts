import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { UserId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { type CreatedCompany, createCompany } from '../../src/tenancy/create-company.ts'
import { insertSession } from '../../src/tenancy/sign-in/session-store.ts'
import { findAccount } from '../../src/tenancy/member/user-store.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { assertEveryChainHolds } from '../harness/event/ledger-oracle.ts'
import { cloneDatabase, type TestDatabase } from '../harness/database/template-db.ts'

export type TargetReport = {
  /** After a garbage collection. */
  heapBytes: number
  rssBytes: number
  /** The most that the process ever used. */
  rssBytesMax: number
}

type Parts = {
  url: string
  company: CreatedCompany
  userId: UserId
  db: Database
  child: ChildProcess
  connection: TestDatabase['connection']
}

const PROGRAM = join(import.meta.dirname, 'target-process.ts')
/** How the service itself is run. */
const SCRIPT = readFileSync(join(import.meta.dirname, '../../../bin/annals'), 'utf8')
const HEAP_OPTIONS = SCRIPT.match(/--max-semi-space-size=\d+/g) ?? []
assert.equal(HEAP_OPTIONS.length, 1, 'bin/annals sets it')
const SERVE = readFileSync(join(import.meta.dirname, '../../src/command/serve.ts'), 'utf8')
assert.match(SERVE, /^ {2}using \w+ = limitHeapGrowth\(\)$/m, 'so does target-process.ts')

/** A service with one company in a separate process, and the reports of that process. */
export class Target implements AsyncDisposable {
  readonly url: string
  readonly company: CreatedCompany
  readonly #parts: Parts
  readonly #owned: AsyncDisposableStack
  #stderr = ''

  static async start(): Promise<Target> {
    await using stack = new AsyncDisposableStack()
    const database = stack.use(await cloneDatabase())
    const { connection } = database
    const { NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
    const child = fork(PROGRAM, {
      execArgv: ['--expose-gc', ...HEAP_OPTIONS],
      silent: true,
      env: {
        ANNALS_DATABASE_URL: database.url,
        ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
        ANNALS_PORT: '0',
        ANNALS_RATE_LIMITS: 'off',
        NODE_COMPILE_CACHE,
        NODE_OPTIONS,
      },
    })
    stack.defer(() => stop(child))
    const [{ url }] = await once(child, 'message')
    const db = stack.use(
      new Database({
        connection,
        role: 'annals_serving',
        connectionsMax: 2,
        logger: createLogger('silent'),
      }),
    )
    const company = await createCompany(db.db, {
      company: 'Hostile',
      plan: 'ENTERPRISE',
      workspaces: ['Production'],
      project: 'Billing',
      email: 'owner@example.com',
      password: 'correct horse battery',
      allowlist: ['127.0.0.1/32'],
    })
    const account = await findAccount(db.db, company.user.email)
    assert(account)
    const parts = { url, company, userId: account.userId, db, child, connection }
    return new Target(parts, stack.move())
  }

  private constructor(parts: Parts, owned: AsyncDisposableStack) {
    this.url = parts.url
    this.company = parts.company
    this.#parts = parts
    this.#owned = owned
    parts.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
  }

  /** What the service has logged as an error. */
  get errors(): string {
    return this.#stderr
  }

  get isAlive(): boolean {
    return isAlive(this.#parts.child)
  }

  /** A new session of the company's owner, because some routes end the session of their caller. */
  async signIn(): Promise<string> {
    const { db, userId } = this.#parts
    const session = { userId, address: '127.0.0.1', userAgent: 'hostile', nowMs: Date.now() }
    // Like the login, which holds the account: two at once would end the same old sessions.
    const signIn = () =>
      db.db.transaction().execute(async (trx) => {
        await trx
          .selectFrom('app_user')
          .select('id')
          .where('id', '=', userId)
          .forNoKeyUpdate()
          .execute()
        return await insertSession(trx, session)
      })
    // The attack may keep PostgreSQL so busy that this connection is given up.
    const { token } = await eventually(signIn)
    return `annals_session=${token}`
  }

  async report(): Promise<TargetReport> {
    this.#parts.child.send('report')
    const [report] = await once(this.#parts.child, 'message')
    return report
  }

  async assertVerifies(): Promise<void> {
    await assertEveryChainHolds(this.#parts.connection)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync()
  }
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

async function stop(child: ChildProcess): Promise<void> {
  if (!isAlive(child)) return
  child.send('stop')
  await once(child, 'exit')
}
