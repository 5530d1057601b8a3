import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { ANNALS, AnnalsProcess, type Outcome, runAnnals } from '../harness/app/annals-process.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
await annals.createCompany()
const env = {
  ANNALS_DATABASE_URL: annals.database.url,
  ANNALS_ARCHIVE_URL: annals.archiveUrl,
  ANNALS_SECRET_KEY: SECRET_KEY,
}

/** Blocks one of Node's file threads, as a network mount that hangs does. */
const BLOCK_A_THREAD = `
  import { open } from 'node:fs'
  open(new URL('pipe', import.meta.url), () => {})
`

test('a command ends after its last line even if a file thread is blocked', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-blocked-'))
  const preload = join(folder.path, 'block.mjs')
  await writeFile(preload, BLOCK_A_THREAD)
  execFileSync('mkfifo', [join(folder.path, 'pipe')])
  await using command = new AnnalsProcess(['verify'], {
    ...env,
    NODE_OPTIONS: `--import ${preload}`,
  })
  await command.printed(/every chain is intact/)
  // A command that never ends fails the test instead of blocking it.
  AbortSignal.timeout(240_000).addEventListener('abort', () => command.signal('SIGKILL'))
  assert.equal((await command.exited).code, 0)
})

/** Runs a command in a shell, which redirects its output. */
async function inShell(script: string): Promise<Outcome> {
  return await runAnnals([], env, ['sh', '-c', script])
}

test('a command that cannot write its output says so and exits with code 1', async () => {
  for (const command of ['migrate', 'openapi', 'bootstrap --json']) {
    const { code, stderr } = await inShell(`${ANNALS} ${command} > /dev/full`)
    assert.equal(code, 1, command)
    assert.match(stderr, /^annals: [^\n]*output could not be written[^\n]*ENOSPC[^\n]*\n$/, command)
  }
})

test('a command whose reader is gone ends quietly with exit code 1', async () => {
  const script = `{ ${ANNALS} openapi; echo "code $?" >&2; } | true`
  const { stderr } = await inShell(script)
  assert.equal(stderr, 'code 1\n')
})

test('a command whose standard output is closed says so and changes nothing', async () => {
  const countCompanies = async () => (await client.query('select from company')).rowCount
  const client = new Client(annals.database.connection)
  await using _ended = { [Symbol.asyncDispose]: () => client.end() }
  await client.connect()
  const before = await countCompanies()
  for (const command of ['bootstrap --json', 'migrate']) {
    const { code, stderr } = await inShell(`${ANNALS} ${command} >&-`)
    assert.equal(code, 1, command)
    assert.match(stderr, /^annals: Standard output is closed[^\n]*\n$/, command)
  }
  assert.equal(await countCompanies(), before)
})
