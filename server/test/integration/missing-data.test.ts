import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { after, test } from 'node:test'
import { runAnnals } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { EngineFolder, query } from '../harness/database/engine.ts'
import { createEmptyDatabase } from '../harness/database/template-db.ts'

const SECRET_KEY = Buffer.alloc(32).toString('base64')

/** Commands that need data and must not create any. */
const READERS = [
  ['verify'],
  ['archive'],
  ['company', 'set-plan', '--company', crypto.randomUUID(), '--plan', 'PRO'],
  ['user', 'reset-link', '--email', 'ann@example.com'],
  ['secret-key', 'accept'],
]
/** Commands that create a database where there never was one. */
const CREATORS = [['serve'], ['bootstrap'], ['migrate']]

const folder = EngineFolder.prepared()
after(() => folder[Symbol.asyncDispose]())
const env = { ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: '0' }

async function assertRefused(
  commands: string[][],
  given: Record<string, string>,
  sentence: RegExp,
): Promise<void> {
  for (const command of commands) {
    const { code, stderr } = await runAnnals(
      command,
      given,
      // A service that starts fails the test instead of blocking it.
      ['timeout', '60'],
    )
    assert.equal(code, 1, command.join(' '))
    assert.match(stderr, /^annals: [^\n]+\n$/)
    assert.match(stderr, sentence)
  }
}

test('no command creates a database in place of a lost one', async () => {
  const made = await runCommandInHost(['bootstrap', '--json'], env)
  assert.equal(made.code, 0, made.stderr)
  const gone = new RegExp(`is missing, .* delete ${folder.path('engine.password')} to start`)
  fs.renameSync(folder.path('engine/cluster'), folder.path('cluster'))
  await assertRefused([...READERS, ...CREATORS], env, gone)
  assert.equal(fs.existsSync(folder.path('engine/cluster')), false)
  // Such as a separate disk that isn't mounted.
  fs.renameSync(folder.path('engine'), folder.path('aside'))
  await assertRefused([['verify'], ['migrate']], env, gone)
  assert.equal(fs.existsSync(folder.path('engine')), false)

  fs.renameSync(folder.path('aside'), folder.path('engine'))
  fs.renameSync(folder.path('cluster'), folder.path('engine/cluster'))
  const { code, stdout } = await runCommandInHost(['verify'], env)
  assert.deepEqual([code, stdout], [0, 'ok: 0 events in 2 workspaces, every chain is intact\n'])
})

test('serve refuses a key file that is not 32 bytes, and other commands ignore it', async () => {
  for (const text of ['', 'c2hv', 'not base64']) {
    fs.writeFileSync(folder.path('secret.key'), text)
    await assertRefused([['serve']], env, /secret\.key is not a secret key: it must be 32 bytes/)
  }
  assert.equal((await runCommandInHost(['verify'], env)).code, 0)
  assert.equal(fs.existsSync(folder.path('engine/cluster/postmaster.pid')), false)
  fs.rmSync(folder.path('secret.key'))
})

test('rejects an empty engine.password immediately', async () => {
  const password = fs.readFileSync(folder.path('engine.password'))
  fs.writeFileSync(folder.path('engine.password'), '\n')
  await assertRefused([['verify']], env, /engine\.password is empty .* Restore it from a backup/)
  fs.writeFileSync(folder.path('engine.password'), password)
})

test('commands that read reject an empty database and leave it empty', async () => {
  await using database = await createEmptyDatabase()
  const given = {
    ANNALS_DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_ARCHIVE_URL: `file://${folder.path('archive')}`,
  }
  await assertRefused(READERS, given, /The database has no Annals tables.*annals migrate/)
  const tables = await query(
    database.connection,
    `select from pg_tables where schemaname = 'public'`,
  )
  assert.deepEqual(tables, [])

  // With tables, but without a chain to check.
  const migrated = await runCommandInHost(['migrate'], given)
  assert.equal(migrated.code, 0, migrated.stderr)
  await assertRefused(
    [['verify']],
    given,
    /Nothing was verified, because the database has no workspaces/,
  )
})
