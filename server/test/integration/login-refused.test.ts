import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { OperatorError } from '../../src/errors.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { migrate } from '../../src/platform/pg/migrate.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { logIn } from '../harness/sign-in/login.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { createEmptyDatabase, urlOf } from '../harness/database/template-db.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await createEmptyDatabase())
const name = database.connection.database
/** A superuser on another database, which none of the cases below affects. */
const admin = { ...database.connection, database: 'postgres' }
/** A separate login, because all test files share the roles of the server. */
const login = `login_${randomBytes(6).toString('hex')}`
await query(
  admin,
  `create role ${login} login password 'secret';
   grant annals_serving, annals_keeper to ${login};
   alter database ${name} owner to ${login}`,
)
stack.defer(async () => {
  await query(admin, `alter database ${name} owner to ${admin.user}`)
  await query(database.connection, `drop owned by ${login} cascade`)
  await query(admin, `drop role ${login}`)
})
const connection = { ...database.connection, user: login, password: 'secret' }
const annals = stack.use(await startTestApp({ databaseUrl: urlOf(connection) }))
const { workspaceKey: key } = await annals.createCompany()

const send = () =>
  annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'login.refused' } })

const exportRequest = { source: 'HOT', format: 'JSONL' }
const credentials = { email: 'a@example.com', password: 'correct horse' }
/** `newKey` has not been used yet, so that it is in no cache. */
const callsWith = (newKey: string) => [
  send,
  () => annals.call('GET', '/v1/events', { key }),
  () => annals.call('GET', '/v1/keys/status', { key: newKey }),
  () => annals.call('POST', '/v1/exports', { key, body: exportRequest }),
  () => logIn(annals, credentials),
  () => annals.call('GET', '/ready'),
]

async function disconnectAll(): Promise<void> {
  await query(
    admin,
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname like '${name}%'`,
  )
}

for (const [what, refuse, allow] of [
  [
    'the login is no longer a member of the serving role',
    `revoke annals_serving from ${login}`,
    `grant annals_serving to ${login}`,
  ],
  ['the role may not log in', `alter role ${login} nologin`, `alter role ${login} login`],
  [
    'the role is renamed',
    `alter role ${login} rename to ${login}_x`,
    `alter role ${login}_x rename to ${login}; alter role ${login} password 'secret'`,
  ],
  [
    'the role may not connect to the database',
    `revoke connect on database ${name} from public, ${login}`,
    `grant connect on database ${name} to public, ${login}`,
  ],
  [
    'the database accepts no connections',
    `alter database ${name} allow_connections false`,
    `alter database ${name} allow_connections true`,
  ],
] as const) {
  test(`returns 503 with Retry-After and recovers when ${what}`, async () => {
    const { workspaceKey: newKey } = await annals.createCompany()
    const calls = callsWith(newKey)
    await query(admin, refuse)
    try {
      await disconnectAll()
      // A check is reused for a quarter of a second.
      await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 503))
      // Twice: the first call can still find a connection that was closed a moment ago.
      for (const call of [...calls, ...calls]) {
        const { status, json, headers } = await call()
        assert.deepEqual([status, json.code], [503, 'unavailable'])
        assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
      }
    } finally {
      await query(admin, allow)
    }
    await eventually(async () => assert.equal((await send()).status, 201))
    await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 200))
  })
}

test('a start on a database that accepts no connections ends with a clear message', async () => {
  await query(admin, `alter database ${name} allow_connections false`)
  try {
    await assert.rejects(migrate({ connection, logger: createLogger('silent') }), (error) => {
      assert(error instanceof OperatorError, String(error))
      assert.match(
        error.message,
        /^The database returned an error: .*not currently accepting connections\.$/,
      )
      return true
    })
  } finally {
    await query(admin, `alter database ${name} allow_connections true`)
  }
})
