import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CHANGES, readOperations } from '../harness/openapi/operations.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const changes = (await readOperations()).filter(({ method }) => CHANGES.has(method))

/** A route returns this error only if it has read the body. */
const BROKEN = `[${' '.repeat(5_000)}`

function assertRefused(
  { status, json, text }: TestResponse,
  expected: { status: number; code: string },
) {
  assert.deepEqual({ status, code: json?.code }, expected, text)
}

test('reads at most 4 kB from a caller without a key or session', async () => {
  const open = changes.filter(({ isOpen }) => isOpen)
  assert.deepEqual(
    open.map(({ id }) => id),
    ['logIn', 'finishLogIn', 'requestPasswordReset', 'getLink', 'useLink', 'startOidcSignIn'],
  )
  for (const { method, path } of open) {
    const response = await annals.call(method, path, { text: BROKEN })
    assertRefused(response, { status: 413, code: 'payload_too_large' })
    assert.match(response.json.error, /4096 bytes/, path)
    const small = await annals.call(method, path, { text: '[]'.padEnd(4_096) })
    assertRefused(small, { status: 400, code: 'invalid_request' })
  }
})

test('every other route refuses an anonymous caller before it reads the body', async () => {
  const guarded = changes.filter(({ isOpen }) => !isOpen)
  assert(guarded.length > 50)
  for (const { method, path, isDashboard } of guarded) {
    const response = await annals.call(method, path, { text: BROKEN })
    const code = isDashboard ? 'not_signed_in' : 'missing_api_key'
    assertRefused(response, { status: 401, code })
  }
})

test('refuses an unknown path or method before the body is read', async () => {
  for (const text of [BROKEN, 'x'.repeat(300_000)]) {
    const nowhere = await annals.call('POST', '/nowhere', { text })
    assertRefused(nowhere, { status: 404, code: 'not_found' })
    const wrong = await annals.call('PUT', '/v1/events', { text })
    assertRefused(wrong, { status: 405, code: 'method_not_allowed' })
    assert.equal(wrong.headers.get('allow'), 'GET, HEAD, POST')
  }
})

test('refuses an address with too many attempts before the body is read, and counts bad bodies', async () => {
  const headers = { 'sec-fetch-site': 'same-origin' }
  const tryLogin = (text: string) => annals.call('POST', '/dashboard/session', { text, headers })
  const codes: string[] = []
  for (let tries = 0; tries < 60; tries += 1) codes.push((await tryLogin('[')).json.code)
  const first = codes.indexOf('rate_limited')
  assert(first > 0 && first <= 52, codes.join())
  assert(codes.slice(0, first).every((code) => code === 'invalid_json'))
  const refused = await tryLogin(BROKEN)
  assertRefused(refused, { status: 429, code: 'rate_limited' })
  assert(Number(refused.headers.get('retry-after')) > 0)
})
