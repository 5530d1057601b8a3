import { randomBytes } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type App, startApp } from '../../../src/app.ts'
import { parseConfig } from '../../../src/config.ts'
import type { ServeRole } from '../../../src/serve-role.ts'
import type { Clock, MonotonicClock } from '../../../src/platform/time/clock.ts'
import type { HttpTimeouts } from '../../../src/edge/http/http-server.ts'
import type { OutputBudget } from '../../../src/edge/http/output-budget.ts'
import type { ReadBack } from '../../../src/outlet/archive/read-back.ts'
import type { DownloadLimits } from '../../../src/edge/export/download-slots.ts'
import type { ExportTimeouts } from '../../../src/outlet/export/export-timeouts.ts'
import type { LogLevel } from '../../../src/platform/log-level.ts'
import { createLogger, type Logger } from '../../../src/platform/logger.ts'
import { Database } from '../../../src/platform/pg/database.ts'
import {
  type CompanyPlan,
  type CreatedCompany,
  createCompany,
} from '../../../src/tenancy/create-company.ts'
import { hashPassword } from '../../../src/tenancy/sign-in/password.ts'
import { TIMEOUT_FACTOR } from '../timing/timeout-factor.ts'
import { cloneDatabase, type TestDatabase } from '../database/template-db.ts'

export type TestApp = AsyncDisposable & {
  url: string
  app: App
  database: TestDatabase
  /** The archive's URL, or empty if there is none. */
  archiveUrl: string
  /** Threads that archived before and are idle now. */
  readBacks: ReadBack[]
  /** A new company for the test. */
  createCompany: (options?: Partial<CompanyPlan>) => Promise<CreatedCompany>
  /** Sends a request with a key. A JSON response is parsed. */
  call: (method: string, path: string, options?: CallOptions) => Promise<TestResponse>
}

export type CallOptions = {
  key?: string
  body?: unknown
  /** Sent unchanged, instead of `body`. */
  text?: string | Buffer
  headers?: Record<string, string>
}

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field it expects
export type TestResponse = { status: number; headers: Headers; text: string; json: any }

/** Shared by all apps of a test file, because nodes of one database need the same key. */
export const SECRET_KEY = randomBytes(32).toString('base64')

/** Like a monotonic clock: it stands still while the wall clock is set back. */
function neverBack(clock: Clock): MonotonicClock {
  let latestMs = clock()
  return () => (latestMs = Math.max(latestMs, clock()))
}

type TestAppOptions = {
  env?: Record<string, string>
  clock?: Clock
  /** By default, durations follow `clock` too, so that a test moves both at once. */
  monotonic?: MonotonicClock
  databaseUrl?: string
  logger?: Logger
  timeouts?: Partial<HttpTimeouts>
  role?: ServeRole
  downloadBytesMax?: number
  exportTimeouts?: ExportTimeouts
  downloadLimits?: DownloadLimits
  output?: OutputBudget
  /** 1 for tests that are about outages. */
  timeoutFactor?: number
  /** If false, `ANNALS_ARCHIVE_URL` is not set. */
  hasArchive?: boolean
  /** Serves the built dashboard pages. Without it there are none. */
  pagesFolder?: string
}

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await cloneDatabase())
  const archive = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-archive-')))
  const config = parseConfig({
    ANNALS_DATABASE_URL: options.databaseUrl ?? database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_PORT: '0',
    ...(options.hasArchive !== false && { ANNALS_ARCHIVE_URL: pathToFileURL(archive.path).href }),
    ...options.env,
  })
  const level: LogLevel = config.logLevel === 'info' ? 'silent' : config.logLevel
  const app = stack.use(
    await startApp({
      config,
      logger: options.logger ?? createLogger(level, 'stderr'),
      ...(options.clock && {
        clock: options.clock,
        monotonic: options.monotonic ?? neverBack(options.clock),
      }),
      ...(options.timeouts && { timeouts: options.timeouts }),
      ...(options.role && { role: options.role }),
      ...(options.downloadBytesMax !== undefined && {
        downloadBytesMax: options.downloadBytesMax,
      }),
      ...(options.downloadLimits && { downloadLimits: options.downloadLimits }),
      ...(options.exportTimeouts && { exportTimeouts: options.exportTimeouts }),
      ...(options.output && { output: options.output }),
      timeoutFactor: options.timeoutFactor ?? TIMEOUT_FACTOR,
      ...(options.pagesFolder !== undefined && { pagesFolder: options.pagesFolder }),
    }),
  )
  const url = app.url ?? ''
  const readBacks: ReadBack[] = []
  stack.defer(async () => {
    for (const readBack of readBacks) await readBack[Symbol.asyncDispose]()
  })
  const kept = stack.move()
  return {
    url,
    app,
    database,
    archiveUrl: config.archiveUrl ?? '',
    readBacks,
    createCompany: (options) =>
      createCompany(app.database.db, { ...DEFAULT_COMPANY, ...options }, hashOnce),
    call: (method, path, callOptions) => call(`${url}${path}`, method, callOptions),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

const DEFAULT_COMPANY: CompanyPlan = {
  company: 'Acme',
  plan: 'ENTERPRISE',
  workspaces: ['Production'],
  project: 'Billing',
  email: null,
  password: 'correct horse',
  allowlist: ['127.0.0.1/32', '::1/128'],
}

/** A company in a database whose service runs in another process. */
export async function createCompanyIn(
  { connection }: Pick<TestDatabase, 'connection'>,
  options: Partial<CompanyPlan> = {},
): Promise<CreatedCompany> {
  const logger = createLogger('silent')
  const role = 'annals_serving'
  const timeoutFactor = TIMEOUT_FACTOR
  await using database = new Database({
    connection,
    role,
    connectionsMax: 1,
    logger,
    timeoutFactor,
  })
  return await createCompany(database.db, { ...DEFAULT_COMPANY, ...options }, hashOnce)
}

const hashes = new Map<string, Promise<string>>()

/** Most owners have the same password, and a hash takes over 30 ms of CPU time. */
function hashOnce(password: string): Promise<string> {
  const hash = hashes.get(password) ?? hashPassword(password)
  hashes.set(password, hash)
  return hash
}

export async function call(
  url: string,
  method: string,
  { key, body, text, headers }: CallOptions = {},
): Promise<TestResponse> {
  const payload = text ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url, {
    method,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { body: Buffer.from(payload) }),
  })
  const responseText = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return {
    status: response.status,
    headers: response.headers,
    text: responseText,
    json: isJson ? JSON.parse(responseText) : null,
  }
}
