import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { after, test } from 'node:test'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { EngineFolder, isRunning } from '../harness/database/engine.ts'
import { eventually, oneOfManyWithin } from '../harness/timing/eventually.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { call } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const KEY = /^annals_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/

// One service in its own folder, for all tests that need a running one.
const folder = new EngineFolder()
const env = { ANNALS_DATA_DIR: folder.dataDir, ANNALS_PORT: '0' }
const service = new AnnalsProcess(['serve'], env)
after(async () => {
  await service[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})
const [, url = ''] = await service.printed(/Annals is running at (http:\S+)/)

/** One line for people, without a stack trace. */
function assertSentence(stderr: string, pattern: RegExp) {
  assert.match(stderr, /^annals: [^\n]+\n$/)
  assert.match(stderr, pattern)
}

async function keyStatus(key: string) {
  return await call(`${url}/v1/keys/status`, 'GET', { key })
}

test('the first start prints a URL, a login, both keys and working curl commands', async () => {
  const [text] = await service.printed(/[^]*curl [^\n]*\n[^]*curl [^\n]*\n/)
  assert.match(text, /Login +demo@example\.com +\/ +\S+/)
  const [, workspaceKey = ''] = /Workspace key +(\S+)/.exec(text) ?? []
  const [, companyKey = ''] = /Company key +(\S+)/.exec(text) ?? []
  assert.match(workspaceKey, KEY)
  assert.equal((await keyStatus(companyKey)).json.scope, 'COMPANY')
  const [send, find] = await Promise.all([...text.matchAll(/curl -s (.*)/g)].map(runCurl))
  assert.match(send ?? '', /^\{"id":"[0-9a-f-]{36}"\}$/)
  assert.match(find ?? '', /^\{"data":\[.*"nextCursor":null\}$/)
})

/** What the printed command does in a shell: a URL, headers, and a body, which makes it a POST. */
async function runCurl([, line = '']: RegExpMatchArray): Promise<string> {
  const address = line.split(' ', 1)[0] ?? ''
  const headers = [...line.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const body = /-d '([^']+)'/.exec(line)?.[1]
  const response = await fetch(address, {
    headers: Object.fromEntries(headers),
    ...(body !== undefined && { method: 'POST', body }),
  })
  return await response.text()
}

test('a second service on the same folder is rejected with a clear message, and the first continues', async () => {
  const { code, stderr } = await runAnnals(['serve'], env)
  assert.equal(code, 1)
  assertSentence(stderr, /already|other|another/)
  assert.equal((await call(`${url}/ready`, 'GET')).status, 200)
})

test('bootstrap beside a running service prints JSON, and the keys work immediately', async () => {
  const { code, stdout } = await runCommandInHost(
    ['bootstrap', '--json', '--company', 'Acme', '--plan', 'STARTER', '--workspace', 'One']
      .concat(['--workspace', 'Two', '--project', 'Billing', '--email', 'Owner@Acme.example'])
      .concat(['--password', 'correct horse', '--allow-ip', '192.0.2.7/24', '--allow-ip', '::1']),
    env,
  )
  assert.equal(code, 0)
  assert.equal(stdout.trimEnd().split('\n').length, 1)
  const made = JSON.parse(stdout)
  assert.deepEqual(blank(made), {
    company: { id: 'uuid', name: 'Acme', plan: 'STARTER' },
    workspace: { id: 'uuid', name: 'One' },
    project: { id: 'uuid', name: 'Billing' },
    companyKey: 'key',
    workspaceKey: 'key',
    user: { email: 'owner@acme.example', password: 'correct horse' },
    workspaces: [
      { id: 'uuid', name: 'One', workspaceKey: 'key' },
      { id: 'uuid', name: 'Two', workspaceKey: 'key' },
    ],
  })
  assert.equal(made.workspaces[0].id, made.workspace.id)
  assert.equal(made.workspaces[0].workspaceKey, made.workspaceKey)
  for (const key of [made.companyKey, made.workspaceKey, made.workspaces[1].workspaceKey]) {
    assert.equal((await keyStatus(key)).status, 200)
  }
})

/** Replaces ids and keys with placeholders, so that the shape can be compared. */
function blank(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, item: unknown) => {
    if (typeof item !== 'string') return item
    return UUID.test(item) ? 'uuid' : KEY.test(item) ? 'key' : item
  })
}

test('a command that creates nothing says so if there is no data, and creates none', async () => {
  const elsewhere = { ...env, ANNALS_DATA_DIR: `${folder.dataDir}-elsewhere` }
  for (const command of [
    ['verify'],
    ['archive'],
    ['company', 'set-plan', '--company', crypto.randomUUID(), '--plan', 'PRO'],
    ['user', 'reset-link', '--email', 'ann@example.com'],
  ]) {
    const { code, stderr } = await runCommandInHost(command, elsewhere)
    assert.equal(code, 1, command.join(' '))
    assertSentence(stderr, /There is no data in .*ANNALS_DATA_DIR/)
  }
  assert(!existsSync(elsewhere.ANNALS_DATA_DIR))
})

test('bootstrap without options creates a PRO company with a new login and default names', async () => {
  const [first, second] = await Promise.all([
    runCommandInHost(['bootstrap', '--json'], env),
    runCommandInHost(['bootstrap', '--json'], env),
  ])
  const [one, two] = [JSON.parse(first.stdout), JSON.parse(second.stdout)]
  assert.equal(one.company.plan, 'PRO')
  assert.notEqual(one.company.id, two.company.id)
  assert.notEqual(one.user.email, two.user.email)
  assert(one.user.password.length >= 12)
})

test('bootstrap reports all invalid options at once and creates nothing', async () => {
  const many = await runCommandInHost(
    ['bootstrap', '--json', '--plan', 'GOLD', '--allow-ip', '10.1/8', '--email', 'nobody']
      .concat(['--password', 'short', '--company', 'x'.repeat(201)])
      .concat(['--workspace', 'A', '--workspace', 'A']),
    env,
  )
  assert.deepEqual([many.code, many.stdout], [1, ''])
  for (const pattern of [
    /--plan must be one of FREE, STARTER, PRO, ENTERPRISE\. Got "GOLD"/,
    /--allow-ip must be an address or CIDR range\. Got "10\.1\/8"/,
    /--email must be an email address\. Got "nobody"/,
    /--password must have at least 10 characters/,
    /Names must have 1 to 200 characters/,
    /different name/,
  ]) {
    assertSentence(many.stderr, pattern)
  }
})

test('bootstrap reads the password from standard input or a variable, and the owner can sign in', async () => {
  const login = async (password: string, email: string) =>
    await call(`${url}/dashboard/session`, 'POST', {
      body: { email, password },
      headers: { 'sec-fetch-site': 'same-origin' },
    })
  const [piped, set] = await Promise.all([
    runAnnals(
      ['bootstrap', '--json', '--email', 'piped@acme.example', '--password-stdin'],
      env,
      // The shell pipes its first argument to the rest of the command.
      ['/bin/sh', '-c', 'echo "$0" | "$@"', 'piped correct horse'],
    ),
    runCommandInHost(['bootstrap', '--json', '--email', 'set@acme.example'], {
      ...env,
      ANNALS_BOOTSTRAP_PASSWORD: 'set correct horse',
    }),
  ])
  assert.deepEqual([piped.code, set.code], [0, 0], piped.stderr + set.stderr)
  assert.equal(JSON.parse(piped.stdout).user.password, 'piped correct horse')
  assert.equal((await login('piped correct horse', 'piped@acme.example')).status, 200)
  assert.equal((await login('set correct horse', 'set@acme.example')).status, 200)
})

test('bootstrap rejects a password that the dashboard would reject, and creates nothing', async () => {
  const email = 'refused@acme.example'
  const args = ['bootstrap', '--json', '--email', email]
  const [flag, variable, twice] = await Promise.all([
    runCommandInHost([...args, '--password', 'password123'], env),
    runCommandInHost(args, { ...env, ANNALS_BOOTSTRAP_PASSWORD: 'ninechars' }),
    runCommandInHost([...args, '--password', 'correct horse'], {
      ...env,
      ANNALS_BOOTSTRAP_PASSWORD: 'correct horse',
    }),
  ])
  for (const { code, stdout } of [flag, variable, twice]) assert.deepEqual([code, stdout], [1, ''])
  assertSentence(flag.stderr, /--password is one of the most common passwords\.$/m)
  assertSentence(variable.stderr, /ANNALS_BOOTSTRAP_PASSWORD must have at least 10 characters\.$/m)
  assertSentence(twice.stderr, /given more than once/)
  const made = await runCommandInHost([...args, '--password', 'correct horse'], env)
  assert.equal(made.code, 0, 'the login is still free')
})

test('rejects a login or workspace name that is already taken, with a clear message', async () => {
  const [email, name] = await Promise.all([
    runCommandInHost(['bootstrap', '--email', 'Demo@Example.com'], env),
    runCommandInHost(['bootstrap', '--workspace', 'Dashboard activity'], env),
  ])
  assert.deepEqual([email.code, email.stdout, name.code, name.stdout], [1, '', 1, ''])
  assertSentence(email.stderr, /There is already an account for demo@example\.com/)
  assertSentence(name.stderr, /Dashboard activity is already taken/)
})

test('a running service applies a change of plan within two seconds', async () => {
  const { stdout } = await runCommandInHost(['bootstrap', '--json', '--plan', 'FREE'], env)
  const { company, workspaceKey } = JSON.parse(stdout)
  const limit = async () => (await keyStatus(workspaceKey)).headers.get('ratelimit-limit')
  assert.equal(await limit(), '50')
  let isStarter = false
  await oneOfManyWithin(2_000, async () => {
    isStarter = !isStarter
    const [plan, expected] = isStarter ? ['STARTER', '200'] : ['FREE', '50']
    const change = ['company', 'set-plan', '--company', company.id, '--plan', plan]
    assert.equal((await runCommandInHost(change, env)).code, 0)
    const changedAtMs = performance.now()
    await eventually(async () => assert.equal(await limit(), expected))
    return performance.now() - changedAtMs
  })
})

test('a plan without webhooks disables the existing ones and reports how many', async () => {
  const { stdout } = await runCommandInHost(['bootstrap', '--json', '--plan', 'PRO'], env)
  const { company, companyKey: key, workspace } = JSON.parse(stdout)
  const setPlan = async (plan: string) =>
    (await runCommandInHost(['company', 'set-plan', '--company', company.id, '--plan', plan], env))
      .stdout
  const webhooks = `${url}/v1/workspaces/${workspace.id}/webhooks`
  // Nothing is sent: the company has no events.
  const create = () => call(webhooks, 'POST', { key, body: { url: 'https://receiver.example/' } })
  const states = async () => {
    const { json } = await call(webhooks, 'GET', { key })
    return json.webhooks.map(({ status, disabledReason }: Record<string, string>) => [
      status,
      disabledReason,
    ])
  }
  for (const response of [await create(), await create()]) assert.equal(response.status, 201)
  assert.doesNotMatch(await setPlan('ENTERPRISE'), /webhook/)
  assert.deepEqual(await states(), [
    ['ENABLED', null],
    ['ENABLED', null],
  ])
  assert.match(await setPlan('FREE'), /is now on the FREE plan\.\nDisabled 2 webhooks, .*\n$/)
  const disabled = [
    'DISABLED',
    "Disabled by the change to the FREE plan, which doesn't include webhooks.",
  ]
  assert.deepEqual(await states(), [disabled, disabled])
  assert.doesNotMatch(await setPlan('STARTER'), /webhook/, 'none was left to disable')
  assert.deepEqual(await states(), [disabled, disabled])
  await eventually(async () => assert.equal((await create()).json.code, 'plan_required'))
})

test('rejects an unknown plan or company with a clear message', async () => {
  const setPlan = (id: string, plan: string) =>
    runCommandInHost(['company', 'set-plan', '--company', id, '--plan', plan], env)
  const [plan, company] = await Promise.all([
    setPlan('00000000-0000-7000-8000-000000000000', 'GOLD'),
    setPlan('00000000-0000-7000-8000-000000000000', 'PRO'),
  ])
  assert.deepEqual([plan.code, company.code], [1, 1])
  assertSentence(plan.stderr, /--plan must be one of/)
  assertSentence(company.stderr, /There is no company with the id 00000000-/)
})

test('reports an unknown variable and all invalid values at once', async () => {
  const { code, stderr } = await runAnnals(['serve'], {
    ...env,
    ANNALS_PROT: '80',
    ANNALS_LOG_LEVEL: 'loud',
    ANNALS_METRICS_PORT: 'x',
  })
  assert.equal(code, 1)
  assert.match(stderr, /^annals: The configuration is invalid:\n/)
  for (const name of ['ANNALS_PROT', 'ANNALS_LOG_LEVEL', 'ANNALS_METRICS_PORT']) {
    assert(stderr.includes(`\n  ${name} `), stderr)
  }
  assert.doesNotMatch(stderr, /at .*\(.*:\d+:\d+\)/)
})

for (const variable of ['ANNALS_PORT', 'ANNALS_METRICS_PORT']) {
  test(`reports an occupied ${variable} with a clear message, without touching the data folder`, async () => {
    await using untouched = new EngineFolder()
    const squatter = createServer().listen(0, '127.0.0.1')
    await once(squatter, 'listening')
    const address = squatter.address()
    assert(typeof address === 'object' && address !== null)
    const { code, stderr } = await runAnnals(['serve'], {
      ANNALS_DATA_DIR: untouched.dataDir,
      ANNALS_PORT: '0',
      [variable]: String(address.port),
    })
    squatter.close()
    assert.equal(code, 1)
    assertSentence(stderr, new RegExp(`Port ${address.port} .*already in use.*set ${variable}`))
    assert(!existsSync(untouched.dataDir))
  })
}

test('reports an unreachable database with a clear message, without its password', async () => {
  const { code, stderr } = await runCommandInHost(['bootstrap'], {
    ANNALS_DATABASE_URL: 'postgres://annals:hunter2@127.0.0.1:1/annals',
    ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
  })
  assert.equal(code, 1)
  assertSentence(stderr, /Can't reach the database/)
  assert(!stderr.includes('hunter2'))
})

test('reports an unreachable list of servers with a clear message and the reason of each', async () => {
  const { code, stderr } = await runCommandInHost(['verify'], {
    ANNALS_DATABASE_URL: 'postgres://a:hidden@127.0.0.1:1,127.0.0.1:2/x',
    ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
  })
  assert.equal(code, 1)
  assertSentence(stderr, /^annals: Can't reach the database: 127\.0\.0\.1:1: .*127\.0\.0\.1:2: /)
  assert(!stderr.includes('hidden'))
})

test('reports a database that goes away while a command runs with a clear message', async () => {
  await using database = await cloneDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const given = {
    ANNALS_DATABASE_URL: proxy.urlTo(database.connection),
    ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
  }
  proxy.cutOnceAt('from "workspace"', 'before')
  const { code, stderr } = await runCommandInHost(['verify'], given)
  assert.equal(code, 1)
  assertSentence(stderr, /^annals: The command failed because of a database error: .+ Run it again/)
})

test('a service on an external database creates no demo company and stops on a signal', async () => {
  await using database = await cloneDatabase()
  const given = {
    ANNALS_DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
    ANNALS_PORT: '0',
  }
  await using own = new AnnalsProcess(['serve', '--role', 'api'], given)
  await own.printed(/Annals is running at http:\S+/)
  own.signal('SIGINT')
  const { code, stdout } = await own.exited
  assert.equal(code, 0)
  assert.doesNotMatch(stdout, /key|Login/)
})

test('commands work without a service: they start the engine and stop it afterwards', async () => {
  await using own = new EngineFolder()
  const alone = { ANNALS_DATA_DIR: own.dataDir, ANNALS_PORT: '0' }
  const { code, stdout } = await runAnnals(['bootstrap', '--json'], alone)
  assert.equal(code, 0)
  assert(!existsSync(own.path('engine/cluster/postmaster.pid')))
  const key = JSON.parse(stdout).companyKey
  await using later = new AnnalsProcess(['serve'], alone)
  const [text, at = ''] = await later.printed(/[^]*running at (http:\S+)[^\n]*\n\n/)
  assert.doesNotMatch(text, /Login/, 'a folder with a company gets no demo')
  assert.equal((await call(`${at}/v1/keys/status`, 'GET', { key })).status, 200)
  assert.equal(statSync(own.path('secret.key')).mode & 0o777, 0o600)
  const postmaster = own.postmasterPid()
  later.signal('SIGTERM')
  assert.equal((await later.exited).code, 0)
  assert(!isRunning(postmaster), 'no process is left')
})

test('serves with the embedded engine whatever PG* variables the shell has', async () => {
  await using other = new EngineFolder()
  await using started = new AnnalsProcess(['serve'], {
    ANNALS_DATA_DIR: other.dataDir,
    ANNALS_PORT: '0',
    PGSSLMODE: 'require',
    PGSSLNEGOTIATION: 'direct',
    PGREPLICATION: 'database',
    PGOPTIONS: '-c default_transaction_read_only=on',
    PGCLIENT_ENCODING: 'LATIN1',
    PGHOST: '127.0.0.1',
    PGPORT: '1',
    PGUSER: 'other',
    PGDATABASE: 'other',
    PGDATA: '/nowhere',
  })
  const [, at = ''] = await started.printed(/Annals is running at (http:\S+)/)
  const [, key = ''] = await started.printed(/Workspace key +(\S+)/)
  const body = { category: 'auth', action: 'user.login' }
  assert.equal((await call(`${at}/v1/events`, 'POST', { key, body })).status, 201)
})

test('openapi prints the document that the service serves', async () => {
  const { code, stdout } = await runCommandInHost(['openapi'])
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(stdout), (await call(`${url}/openapi.json`, 'GET')).json)
})

test('rejects an unknown command or option with the usage', async () => {
  const wrong = [['bogus'], ['serve', '--role', 'x'], []]
  for (const { code, stdout, stderr } of await Promise.all(
    wrong.map((args) => runCommandInHost(args)),
  )) {
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /Usage: annals/)
  }
})
