import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import { AnnalsProcess, type Outcome, runAnnals } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { Terminal, terminalSkipReason } from '../harness/app/terminal.ts'
import { EngineFolder } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'

const service = await startTestApp()
after(() => service[Symbol.asyncDispose]())
const folder = await mkdtempDisposable(join(tmpdir(), 'annals-client-'))
after(() => folder[Symbol.asyncDispose]())

const UUID = /^[0-9a-f-]{36}$/
const environment = (key: string) => ({ ANNALS_API_URL: service.url, ANNALS_API_KEY: key })

/** Runs a command that must succeed, and parses the JSON that it prints. */
async function runJson(key: string, args: readonly string[], within: readonly string[] = []) {
  const run = within.length > 0 ? runAnnals : runCommandInHost
  const outcome = await run([...args, '--json'], environment(key), within)
  assert.equal(outcome.code, 0, outcome.stderr)
  return linesOf(outcome)
}

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field it expects
function linesOf({ stdout }: Outcome): any[] {
  return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

const fromFile = (path: string) => ['sh', '-c', `exec "$0" "$@" < '${path}'`]

let files = 0
function writeEvents(text: string | Buffer): string {
  const path = join(folder.path, `events-${(files += 1)}.jsonl`)
  writeFileSync(path, text)
  return path
}

test('send stores one event with all its fields, and prints its ID and sequence number', async () => {
  const { workspaceKey: key, project } = await service.createCompany()
  const [sent] = await runJson(
    key,
    ['events', 'send', '--category=auth', '--action=user.login', '--actor-id=u-17']
      .concat(['--actor-email=ann@customer.example', '--actor-role=admin'])
      .concat(['--resource-type=session', '--resource-id=s-1', `--project=${project.id}`])
      .concat(['--timestamp=2026-11-01T08:00:00Z', '--metadata=ip=192.0.2.1', '--metadata=q=a=b']),
  )
  assert.match(sent.id, UUID)
  assert.deepEqual([sent.seq, sent.result], [1, 'stored'])
  const [event] = await runJson(key, ['events', 'get', sent.id])
  assert.equal(event.timestamp, '2026-11-01T08:00:00.000Z')
  assert.deepEqual(
    [event.category, event.action, event.actor, event.resource, event.metadata, event.projectId],
    [
      'auth',
      'user.login',
      { id: 'u-17', email: 'ann@customer.example', role: 'admin' },
      { type: 'session', id: 's-1' },
      { ip: '192.0.2.1', q: 'a=b' },
      project.id,
    ],
  )
})

test('the address of the service can end in the version of the API', async () => {
  const { workspaceKey } = await service.createCompany()
  for (const suffix of ['/', '/v1', '/v1/']) {
    const env = { ...environment(workspaceKey), ANNALS_API_URL: service.url + suffix }
    const { code, stderr } = await runCommandInHost(['events', 'list'], env)
    assert.equal(code, 0, stderr)
  }
})

test('send stores an event once for an idempotency key, and fails if another event has the key', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const args = ['events', 'send', '--category=a', '--idempotency-key=k-1', '--json']
  const first = linesOf(await runCommandInHost([...args, '--action=one'], environment(key)))
  const second = await runCommandInHost([...args, '--action=two'], environment(key))
  assert.deepEqual([second.code, second.stderr.startsWith('annals: Not stored. ')], [1, true])
  assert.equal(JSON.parse(second.stdout).result, 'conflict')
  const again = await runCommandInHost([...args, '--action=one'], environment(key))
  assert.deepEqual(linesOf(again), [{ ...first[0], result: 'already stored' }])
  const path = join(folder.path, 'conflict.jsonl')
  writeFileSync(path, '{"category":"a","action":"two","idempotencyKey":"k-1"}\n')
  const file = await runCommandInHost(
    ['events', 'send', '--json', '--file', path],
    environment(key),
  )
  assert.deepEqual([file.code, JSON.parse(file.stdout).result], [1, 'conflict'])
  const wrong = await runCommandInHost(['events', 'send', '--file', folder.path], environment(key))
  assert.match(wrong.stderr, /^annals: .* is a folder\. Pass a file with events\.\n$/)
})

test('sending a file with timestamps again stores nothing twice, and equal lines are separate events', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const timestamp = new Date().toISOString()
  const lines = Array.from(
    { length: 600 },
    (_, nth) => `{"category":"c","action":"${nth % 599}","timestamp":"${timestamp}"}`,
  )
  const path = writeEvents(`${lines.join('\n')}\n`)
  const first = await runJson(key, ['events', 'send', '--file', path])
  assert.equal(first.length, 600)
  assert.deepEqual(
    first.map(({ seq, line }) => [seq, line]),
    lines.map((_, nth) => [nth + 1, nth + 1]),
  )
  const again = await runCommandInHost(
    ['events', 'send', '--json', '--file', path],
    environment(key),
  )
  assert.deepEqual(
    linesOf(again).map(({ id, result }) => [id, result]),
    first.map(({ id }) => [id, 'already stored']),
  )
  assert.match(again.stderr, /already stored/)
})

test('an event of a file without a timestamp is a new one each time, and continues with a key', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const line = '{"category":"backup","action":"done"}'
  const path = writeEvents(`${line}\n`)
  for (const _day of ['monday', 'tuesday']) {
    assert.equal((await runJson(key, ['events', 'send', '--file', path]))[0].result, 'stored')
  }
  const timestamp = new Date().toISOString()
  const dated = `{"category":"backup","action":"dated","timestamp":"${timestamp}"}`
  const lines = Array.from({ length: 251 }, () => `${line}\n${dated}`)
  const args = ['events', 'send', '--json', '--file']
  const broken = writeEvents([...lines, '{'].join('\n'))
  const failed = await runCommandInHost([...args, broken], environment(key))
  assert.equal(linesOf(failed).length, 500)
  const [, given = ''] =
    /run the same command again with (--idempotency-key \S+)\./.exec(failed.stderr) ?? []
  const mended = writeEvents(lines.join('\n'))
  const again = await runJson(key, [...args, mended, ...given.split(' ')])
  const stored = again.filter(({ result }) => result === 'stored')
  assert.equal(stored.length, 2, 'only the two events that were not sent before')
})

test('send refuses what it would have to change, as the service does', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const start = '{"category":"a","action":"b","metadata":'
  for (const [text, problem] of [
    [`${start}{"account":12345678901234567890}}`, /^annals: Line 1: .*12345678901234567890/],
    [`${start}{"x":1,"x":2}}`, /^annals: Line 1: .*x/],
    [Buffer.from(`${start}{"x":"\u00ff"}}`, 'latin1'), /^annals: The input is not UTF-8\.\n$/],
  ] as const) {
    const path = writeEvents(text)
    const refused = await runCommandInHost(['events', 'send', '--file', path], environment(key))
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, problem)
  }
  assert.deepEqual(await runJson(key, ['events', 'list']), [])
  const marked = writeEvents('\ufeff{"category":"a","action":"b"}\n')
  assert.equal((await runJson(key, ['events', 'send', '--file', marked]))[0].result, 'stored')
})

test('send reads one event, an array or lines from standard input', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const event = '{\n"category": "a",\n"action": "b"\n}'
  for (const [text, count] of [
    [event, 1],
    [`[${event},\n${event}]`, 2],
    ['{"category":"a","action":"b"}\n\n{"category":"a","action":"c"}', 2],
  ] as const) {
    const within = fromFile(writeEvents(text))
    for (const _ of ['first', 'again']) {
      const sent = await runJson(key, ['events', 'send', '--file=-'], within)
      assert.deepEqual(
        sent.map(({ result }) => result),
        Array.from({ length: count }, () => 'stored'),
      )
    }
  }
})

test('send from standard input that fails midway can be run again without duplicates', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const lines = Array.from({ length: 501 }, (_, nth) => `{"category":"c","action":"${nth}"}`)
  const args = ['events', 'send', '--json', '--file=-']
  const broken = fromFile(writeEvents([...lines, '{'].join('\n')))
  const failed = await runAnnals(args, environment(key), broken)
  assert.equal(failed.code, 1)
  assert.equal(linesOf(failed).length, 500)
  assert.match(failed.stderr, /annals: Line 502 is not valid JSON\.\n$/)
  const [, given = ''] =
    /run the same command again with (--idempotency-key \S+)\./.exec(failed.stderr) ?? []
  const whole = fromFile(writeEvents(lines.join('\n')))
  const again = await runJson(key, [...args, ...given.split(' ')], whole)
  const results = again.map(({ result }) => result)
  assert.deepEqual(results.slice(499), ['already stored', 'stored'])
  assert.equal(again[500].seq, 501)
})

test('send reports each refused event with its line and its problem, and stores the others', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const path = writeEvents('{"category":"a","action":"b"}\n{"category":"a"}\n{"category":7}\n')
  const outcome = await runCommandInHost(
    ['events', 'send', '--json', '--file', path],
    environment(key),
  )
  assert.equal(outcome.code, 1)
  assert.deepEqual(
    linesOf(outcome).map(({ line, result }) => [line, result]),
    [
      [1, 'stored'],
      [2, 'refused'],
      [3, 'refused'],
    ],
  )
  assert.match(linesOf(outcome)[1].error, /action/)
  assert.equal(
    outcome.stderr,
    'annals: Not stored: 2 of 3 events. Correct them, and send them again.\n',
  )
})

test('send with a write-only key succeeds without a sequence number', async () => {
  const { company, workspace } = await service.createCompany()
  const limits = { name: 'Write only', permissions: ['events:write' as const], expiresAt: null }
  const { text: key } = await service.app.database.db
    .transaction()
    .execute((trx) =>
      issueKey(trx, { companyId: company.id, workspaceId: workspace.id, ...limits }, Date.now()),
    )
  const [sent] = await runJson(key, ['events', 'send', '--category=a', '--action=b'])
  assert.deepEqual([sent.result, sent.seq], ['stored', null])
})

test('list prints the newest matching events over several pages, as JSON or as a plain table', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const events = Array.from({ length: 450 }, (_, nth) => ({
    category: nth % 2 === 0 ? 'even' : 'odd',
    action: `a-${nth}`,
    timestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, nth)).toISOString(),
    metadata: { nth },
  }))
  const path = writeEvents(JSON.stringify(events))
  await runJson(key, ['events', 'send', '--file', path])
  const actions = async (...args: string[]) =>
    (await runJson(key, ['events', 'list', ...args])).map(({ action }) => action)
  assert.equal((await actions()).length, 50)
  assert.deepEqual(await actions('--limit=1000'), events.map(({ action }) => action).toReversed())
  assert.deepEqual(await actions('--limit=2', '--filter=category=odd'), ['a-449', 'a-447'])
  const both = ['--filter=category=odd', '--filter=category=even', '--limit=2', '--order=asc']
  assert.deepEqual(await actions(...both), ['a-0', 'a-1'])
  assert.deepEqual(await actions('--filter=metadata.nth=7'), ['a-7'])
  const range = ['--from=2026-01-01T00:00:03Z', '--to=2026-01-01T00:00:05Z']
  assert.deepEqual(await actions(...range), ['a-4', 'a-3'])

  const { stdout } = await runCommandInHost(['events', 'list', '--limit=2'], environment(key))
  const [header, first, second, ...others] = stdout.split('\n')
  assert.match(header ?? '', /^TIME +SEQ +CATEGORY +ACTION +ACTOR +RESOURCE +ID$/)
  assert.match(first ?? '', /^2026-01-01T00:07:29\.000Z +450 +odd +a-449 +- +- +[0-9a-f-]{36}$/)
  assert.match(second ?? '', /a-448/)
  assert.deepEqual(others, [''])
})

test('the text of an event cannot drive the terminal', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const text = 'a\u001b[2J\u009b1m\u202eb\n'
  const event = { category: text, action: text, actor: { id: text }, metadata: { [text]: text } }
  const [sent] = await runJson(key, [
    'events',
    'send',
    '--file',
    writeEvents(JSON.stringify(event)),
  ])
  for (const args of [['list'], ['list', '--json'], ['get', sent.id], ['get', sent.id, '--json']]) {
    const { stdout } = await runCommandInHost(['events', ...args], environment(key))
    assert.doesNotMatch(stdout, /[^\P{Cc}\n]|\u202e/u, args.join(' '))
    assert.match(stdout, /a\\\\?u001b\[2J/)
  }
  assert.equal((await runJson(key, ['events', 'list']))[0].category, text)
})

test('a table on a terminal fits its width', { skip: terminalSkipReason() }, async () => {
  const { workspaceKey: key } = await service.createCompany()
  const long = 'x'.repeat(200)
  await runJson(key, ['events', 'send', `--category=${long}`, `--action=${long}`])
  await using terminal = new Terminal(['events', 'list'], environment(key))
  assert.equal(await terminal.exited, 0)
  assert.match(terminal.screen, /\[2mTIME/)
  const lines = terminal.screen.split('\r\n').filter((line) => line.includes('xxx'))
  assert.equal(lines.length, 1)
  assert(
    lines.every((line) => line.length <= 80 && line.includes('…')),
    terminal.screen,
  )
})

test('tail prints the last events, then each new one that matches, and ends with code 0', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const send = (category: string, action: string) =>
    service.call('POST', '/v1/events', { key, body: { category, action, metadata: { n: 1 } } })
  for (const action of ['1', '2', '3']) await send('auth', action)
  const args = ['events', 'tail', '--last=2', '--filter=category=auth', '--filter=metadata.n=1']
  await using tail = new AnnalsProcess([...args, '--json'], environment(key))
  await tail.printed(/"seq":3/)
  await send('other', '4')
  await send('auth', '5')
  await tail.printed(/"seq":5/)
  tail.signal('SIGINT')
  const outcome = await tail.exited
  assert.deepEqual(
    linesOf(outcome).map(({ seq }) => seq),
    [2, 3, 5],
  )
  assert.deepEqual(
    [outcome.code, outcome.stderr],
    [0, 'Following the log after seq 1. Press Ctrl-C to stop.\n'],
  )
})

test('tail starts at the end of the chain, whatever the timestamps of its events', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const events = Array.from({ length: 37 }, (_, nth) => ({
    category: 'c',
    action: 'a',
    timestamp: new Date(Date.UTC(2026, 0, 1) - nth * 1_000).toISOString(),
  }))
  await service.call('POST', '/v1/events/batch', { key, body: { events } })
  await using tail = new AnnalsProcess(['events', 'tail', '--json'], environment(key))
  await tail.printed(/after seq 37\./, 'stderr')
  await service.call('POST', '/v1/events', { key, body: { category: 'c', action: 'new' } })
  await tail.printed(/"seq":38/)
  tail.signal('SIGTERM')
  assert.equal(linesOf(await tail.exited).length, 1)
})

test('tail ends when the program that reads its output has ended', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const send = () =>
    service.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  for (const _ of [1, 2]) await send()
  const within = ['sh', '-c', '"$0" "$@" | head -n 1']
  await using tail = new AnnalsProcess(
    ['events', 'tail', '--last=1', '--json'],
    environment(key),
    within,
  )
  await tail.printed(/"seq":2/)
  let isOver = false
  void tail.exited.then(() => (isOver = true))
  // Only a write finds out that the reader has gone.
  await eventually(async () => {
    await send()
    assert(isOver)
  })
  assert.equal((await tail.exited).stdout.trimEnd().split('\n').length, 1)
})

test('tail continues after a restart of the service without a gap or a duplicate', async () => {
  await using engine = EngineFolder.prepared()
  const env = { ANNALS_DATA_DIR: engine.dataDir }
  await using first = new AnnalsProcess(['serve'], { ...env, ANNALS_PORT: '0' })
  const started = /running at (\S+)[^]*Workspace key\s+(\S+)/
  const [, url = '', key = ''] = await first.printed(started)
  const client = { ANNALS_API_URL: url, ANNALS_API_KEY: key }
  await runCommandInHost(['events', 'send', '--category=c', '--action=before'], client)
  await using tail = new AnnalsProcess(['events', 'tail', '--last=1', '--json'], client)
  await tail.printed(/"seq":1/)
  first.signal('SIGTERM')
  await first.exited
  await tail.printed(/Retrying until the service responds/, 'stderr')
  await using _second = new AnnalsProcess(['serve'], { ...env, ANNALS_PORT: new URL(url).port })
  await tail.printed(/Connected again/, 'stderr')
  const sent = await runCommandInHost(['events', 'send', '--category=c', '--action=after'], client)
  assert.equal(sent.code, 0, sent.stderr)
  await tail.printed(/"seq":2/)
  tail.signal('SIGINT')
  const outcome = await tail.exited
  assert.deepEqual(
    linesOf(outcome).map(({ action }) => action),
    ['before', 'after'],
  )
  assert.equal(outcome.stderr.match(/Retrying/g)?.length, 1)
})

test('the commands load neither the database client nor the server', async () => {
  const { workspaceKey: key } = await service.createCompany()
  const hook =
    "import{registerHooks}from'node:module';registerHooks({load(url,context,next){const name=/(?:node_modules|dist|bundles)\\/(pg|pino|fastify|kysely)\\b/.exec(url)?.[1];if(name)process.stderr.write(name);return next(url,context)}})"
  const path = join(folder.path, 'hook.mjs')
  writeFileSync(path, hook)
  const env = { ...environment(key), NODE_OPTIONS: `--import ${path}` }
  const outcome = await runAnnals(['events', 'list', '--json'], env)
  assert.deepEqual(outcome, { code: 0, stdout: '', stderr: '' })
})
