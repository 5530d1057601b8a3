import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { redirectTo, type Script, startReceiver } from '../harness/webhook/receiver.ts'

const service = await startTestApp()
after(() => service[Symbol.asyncDispose]())
const company = await service.createCompany()
const { workspaceKey, companyKey } = company

const LIST = ['events', 'list']
const SEND = ['events', 'send', '--category=a', '--action=b']

/** The error of a command that fails, which is a single sentence or two for people. */
async function errorOf(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runCommandInHost(args, {
    ANNALS_API_URL: service.url,
    ANNALS_API_KEY: workspaceKey,
    ...env,
  })
  assert.deepEqual([code, stdout], [1, ''], stderr)
  assert.match(stderr, /^annals: [^\n]+\n$/)
  for (const key of [workspaceKey, companyKey]) assert(!stderr.includes(key), stderr)
  return stderr.slice('annals: '.length, -1)
}

test('a missing key or address is explained before anything is sent', async () => {
  assert.match(
    await errorOf(LIST, { ANNALS_API_KEY: '' }),
    /^ANNALS_API_KEY is not set\. Create a key/,
  )
  assert.match(
    await errorOf(LIST, { ANNALS_API_KEY: 'two words' }),
    /^ANNALS_API_KEY is not an API key/,
  )
  assert.match(await errorOf(LIST, { ANNALS_API_URL: 'localhost:8080' }), /^ANNALS_API_URL must be/)
  const withUser = 'http://user:secret@127.0.0.1'
  assert.match(await errorOf(LIST, { ANNALS_API_URL: withUser }), /must not contain a user/)
})

test('a service that is not there is named', async () => {
  const closed = await startReceiver()
  const url = new URL(closed.url).origin
  await closed[Symbol.asyncDispose]()
  assert.equal(
    await errorOf(LIST, { ANNALS_API_URL: url }),
    `Can't connect to ${url} (connection refused). Check that the service runs, and ANNALS_API_URL.`,
  )
})

test('an unknown key, a key of the wrong scope and an unknown ID are explained', async () => {
  assert.match(
    await errorOf(LIST, { ANNALS_API_KEY: 'annals_wrong' }),
    /unknown or revoked\..* Check ANNALS_API_KEY\.$/,
  )
  assert.match(await errorOf(['webhooks', 'list'], {}), /Use a company key/)
  assert.match(await errorOf(SEND, { ANNALS_API_KEY: companyKey }), /workspace key/)
  for (const id of ['3', crypto.randomUUID()]) {
    assert.match(await errorOf(['events', 'get', id], {}), /Nothing with this ID exists/)
  }
})

test('every field that the service refuses is named', async () => {
  const args = [...SEND, '--actor-email=nope', '--timestamp=yesterday', '--project=3']
  const error = await errorOf(args, {})
  for (const field of ['actor.email', 'timestamp', 'projectId']) {
    assert.match(error, new RegExp(`${field} must be`))
  }
})

test('wrong arguments are explained, and nothing is sent', async () => {
  for (const [args, pattern] of [
    [['events', 'send', '--category=a'], /--category and --action/],
    [[...SEND, '--file=x'], /either a file/],
    [['events', 'send', '--file=x', '--actor-id=u'], /either a file/],
    [[...SEND, '--metadata=x'], /--metadata must be KEY=VALUE/],
    [['events', 'send', '--file=/nowhere/x'], /^\/nowhere\/x doesn't exist\.$/],
    [[...LIST, '--filter=actor=x'], /--filter must be NAME=VALUE.*actorId.*Got "actor=x"/],
    [[...LIST, '--filter=q=x', '--filter=q=y'], /--filter q=… can be used only once/],
    [['events', 'tail', '--filter=q=x'], /--filter must be NAME=VALUE/],
    [['exports', 'create', '--wait'], /need --download/],
    [['exports', 'create', '--format=CSV', '--download=x', '--manifest'], /Only JSONL/],
    [['exports', 'create', '--download=/nowhere/x'], /The folder \/nowhere doesn't exist/],
    [
      ['exports', 'create', '--source=ARCHIVED'],
      /filters\.from is required.*filters\.to is required/,
    ],
    [['webhooks', 'listen', '--forward-to=localhost:3000'], /--forward-to must be an address/],
    [['webhooks', 'listen', '--webhook=x'], /ANNALS_WEBHOOK_SECRET/],
  ] as const) {
    assert.match(await errorOf(args, {}), pattern)
  }
  const { code, stderr } = await runCommandInHost([...LIST, '--limit=0'], {
    ANNALS_API_KEY: workspaceKey,
  })
  assert.equal(code, 1)
  assert.match(stderr, /whole number from 1 to .*\nAdd --help/)
})

test('a company key that can use several workspaces must name one', async () => {
  const two = await service.createCompany({ workspaces: ['Production', 'Staging'] })
  const error = await errorOf(['webhooks', 'list'], { ANNALS_API_KEY: two.companyKey })
  for (const { id, name } of two.workspaces) assert(error.includes(`${id} (${name})`), error)
})

const failing = async (script: Script, pattern: RegExp, args = LIST) => {
  await using other = await startReceiver(script)
  assert.match(await errorOf(args, { ANNALS_API_URL: new URL(other.url).origin }), pattern)
}

test('a server that is not Annals is recognized, and is not asked forever', async () => {
  const headers = { 'content-type': 'application/json' }
  const answering = (body: unknown) => ({ status: 200, headers, body: JSON.stringify(body) })
  await failing(answering({ data: [1] }), /^The response has no list of objects\./)
  const tail = ['events', 'tail', `--workspace=${crypto.randomUUID()}`]
  await failing(answering({ data: [], next: 0, size: 1 }), /accepts any position/, tail)
})

test('a rate limit that does not end is explained in the words of the service', async () => {
  const headers = { 'retry-after': '120', 'content-type': 'application/json' }
  for (const [error, pattern] of [
    [
      'Too many requests. Retry after the delay in the Retry-After header.',
      /^Too many requests\. Try again in 120 s\.$/,
    ],
    ['Your network sends too much.', /^Your network sends too much\. Try again in 120 s\.$/],
  ] as const) {
    const body = JSON.stringify({ error, code: 'rate_limited' })
    await failing({ status: 429, headers, body }, pattern)
  }
})

test('a redirect is not followed, so the key reaches no other host', async () => {
  await using other = await startReceiver()
  await failing(redirectTo(other.url), /redirect \(302\)\. Check ANNALS_API_URL/)
  assert.equal(other.connectionCount, 0)
})

test('the error of a server that sends back what it got has neither the key nor control characters', async () => {
  const echo: Script = ({ headers }) => ({
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ error: `\u001b[2J${headers.authorization}`, code: 'invalid_request' }),
  })
  await failing(echo, /^\\u001b\[2JBearer \[key\]$/)
})
