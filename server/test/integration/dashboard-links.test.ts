import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import type { WorkspaceId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import {
  insertInvitation,
  insertResetLink,
  type LinkToken,
} from '../../src/tenancy/member/one-time-link-store.ts'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import { findAccount, type Role } from '../../src/tenancy/member/user-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { callAs, readAudit } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { cookieIn, enter, logIn } from '../harness/sign-in/login.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startSmtpServer } from '../harness/dashboard/smtp-server.ts'
import { type TestResponse, startTestApp, type TestApp } from '../harness/app/start-app.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const { clock, advance } = manualClock()
const smtp = await startSmtpServer()
const annals = await startTestApp({
  clock,
  env: { ANNALS_SMTP_URL: smtp.url, ANNALS_TRUSTED_PROXIES: '127.0.0.1' },
})
after(async () => {
  await annals[Symbol.asyncDispose]()
  await smtp[Symbol.asyncDispose]()
})

const PASSWORD = 'staple battery'
let people = 0
const newEmail = () => `person-${(people += 1)}@example.com`

async function invite(
  { company }: CreatedCompany,
  email: string,
  role: Role = 'VIEWER',
  workspaceIds: readonly WorkspaceId[] = [],
): Promise<LinkToken> {
  const options = { companyId: company.id, email, role, workspaceIds, createdBy: null }
  return await annals.app.database.db.transaction().execute(async (trx) => {
    const { token } = await insertInvitation(trx, { ...options, nowMs: clock() })
    return token
  })
}

async function reset({ user }: CreatedCompany): Promise<LinkToken> {
  const { db } = annals.app.database
  const account = await findAccount(db, user.email)
  assert(account)
  const { token } = await insertResetLink(db, { ...account, createdBy: null, nowMs: clock() })
  return token
}

const readLink = (token: string) =>
  annals.call('POST', '/dashboard/links/look', { body: { token } })

const use = (token: string, password = PASSWORD, headers: Record<string, string> = {}) =>
  annals.call('POST', '/dashboard/links/use', { body: { token, password }, headers })

test('an invitation shows whom it is for, and viewing does not use it up', async () => {
  const company = await annals.createCompany({ company: 'Acme & Söhne' })
  const email = newEmail()
  const token = await invite(company, email.toUpperCase(), 'ANALYST')
  assert.match(token, /^[\w-]{43}$/)
  for (let times = 0; times < 2; times += 1) {
    const { status, json } = await readLink(token)
    assert.equal(status, 200)
    assert.deepEqual(json, {
      kind: 'INVITATION',
      email,
      companyName: 'Acme & Söhne',
      role: 'ANALYST',
    })
  }
  const resetToken = await reset(company)
  assert.deepEqual((await readLink(resetToken)).json, {
    kind: 'RESET',
    email: company.user.email,
    companyName: 'Acme & Söhne',
  })
})

test('using an invitation creates a signed-in member with the workspaces it names', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const email = newEmail()
  const response = await use(await invite(company, email, 'ANALYST', [company.workspace.id]))
  assert.equal(response.status, 200)
  assert.equal(response.json.user.email, email)
  assert.equal(response.json.user.role, 'ANALYST')
  assert.deepEqual(
    response.json.workspaces.map(({ id }: { id: string }) => id),
    [company.workspace.id],
  )
  const { json } = await callAs(annals, cookieIn(response))('GET', '/dashboard/session')
  assert.deepEqual(json, response.json)
  await enter(annals, { email, password: PASSWORD })
  const [joined, login] = await readAudit(annals, company)
  assert.equal(joined?.action, 'MEMBER_JOINED')
  assert.deepEqual(joined?.resource, { type: 'user', id: json.user.id })
  assert.equal(joined?.metadata.role, 'ANALYST')
  assert.equal(login?.action, 'LOGIN_SUCCEEDED')
})

test('a workspace of another company in an invitation grants nothing', async () => {
  const [company, foreign] = [await annals.createCompany(), await annals.createCompany()]
  const response = await use(await invite(company, newEmail(), 'VIEWER', [foreign.workspace.id]))
  assert.equal(response.status, 200)
  assert.deepEqual(response.json.workspaces, [])
  const given = await annals.app.database.db
    .selectFrom('user_workspace')
    .select('workspace_id')
    .where('user_id', '=', response.json.user.id)
    .execute()
  assert.deepEqual(given, [])
})

test('a reset sets a new password, ends all sessions and other links, and signs in', async () => {
  const company = await annals.createCompany()
  const before = await enter(annals, company.user)
  const [token, other] = [await reset(company), await reset(company)]
  const response = await use(token, PASSWORD, { cookie: before.cookie })
  assert.equal(response.status, 200)
  assert.equal(response.json.user.email, company.user.email)
  assert.equal((await before.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await readLink(other)).status, 404)
  assert.equal((await logIn(annals, company.user)).status, 401)
  await enter(annals, { email: company.user.email, password: PASSWORD })
  const entry = (await readAudit(annals, company)).find(({ action }) => action === 'PASSWORD_RESET')
  assert.equal(entry?.metadata.endedSessions, 1)
  assert(!JSON.stringify(entry).includes(token))
})

test('a link works once, even with concurrent requests', async () => {
  const company = await annals.createCompany()
  for (const token of [await invite(company, newEmail()), await reset(company)]) {
    const responses = await Promise.all(Array.from({ length: 5 }, () => use(token)))
    const statuses = responses.map(({ status }) => status).toSorted((a, b) => a - b)
    assert.deepEqual(statuses, [200, 404, 404, 404, 404])
    assert.equal((await use(token)).status, 404)
  }
})

test('unknown, used, expired and malformed links get the same 404', async () => {
  const company = await annals.createCompany()
  const used = await reset(company)
  await use(used)
  const expired = await reset(company)
  advance(60 * MINUTE_MS)
  const responses: TestResponse[] = []
  for (const token of [used, expired, 'A'.repeat(43), '', 'x', "' or 1=1", '../..']) {
    responses.push(await readLink(token), await use(token), await use(token, 'short'))
  }
  for (const { status, json } of responses) {
    assert.equal(status, 404)
    assert.deepEqual({ ...json, traceId: null }, { ...responses[0]?.json, traceId: null })
  }
})

test('an invitation is valid for seven days', async () => {
  const company = await annals.createCompany()
  const token = await invite(company, newEmail())
  advance(7 * DAY_MS - 1)
  assert.equal((await readLink(token)).status, 200)
  advance(1)
  assert.equal((await use(token)).status, 404)
})

test('an invalid password does not use up the link', async () => {
  const company = await annals.createCompany()
  const email = newEmail()
  const token = await invite(company, email)
  for (const password of ['short', email, 'qwertyuiop', 'x'.repeat(201)]) {
    const { status, json } = await use(token, password)
    assert.equal(status, 400)
    assert.equal(json.details[0].path, '/password')
  }
  assert.equal((await use(token)).status, 200)
})

test('a second invitation for an address replaces the first', async () => {
  const company = await annals.createCompany()
  const email = newEmail()
  const first = await invite(company, email, 'VIEWER')
  const second = await invite(company, email, 'ADMIN')
  assert.equal((await readLink(first)).status, 404)
  assert.equal((await use(second)).json.user.role, 'ADMIN')
  await assert.rejects(invite(company, email), { code: 'conflict' })
})

test('an address with an account in another company cannot join, and the link stays open', async () => {
  const [company, other] = [await annals.createCompany(), await annals.createCompany()]
  const token = await invite(company, other.user.email)
  const { status, json } = await use(token)
  assert.equal(status, 409)
  assert.equal(json.code, 'conflict')
  assert.equal((await readLink(token)).status, 200)
  await enter(annals, other.user)
})

test('limits the members of a company, including invited ones', async () => {
  const company = await annals.createCompany()
  for (let count = 1; count < COMPANY_BOUNDS.membersMax; count += 1) {
    await invite(company, newEmail())
  }
  await assert.rejects(invite(company, newEmail()), { code: 'conflict' })
})

test('a link ends the session whose cookie was sent along', async () => {
  const company = await annals.createCompany()
  const planted = await enter(annals, company.user)
  const headers = { cookie: planted.cookie }
  assert.equal((await planted.call('GET', '/dashboard/session')).status, 200)
  assert.equal((await use(await invite(company, newEmail()), PASSWORD, headers)).status, 200)
  assert.equal((await planted.call('GET', '/dashboard/session')).status, 401)
})

test('a page of another site cannot use a link', async () => {
  const company = await annals.createCompany()
  const token = await invite(company, newEmail())
  const { status, json } = await use(token, PASSWORD, { origin: 'https://evil.example' })
  assert.equal(status, 403)
  assert.equal(json.code, 'cross_site')
  assert.equal((await readLink(token)).status, 200)
})

test('stores only the hash of a link', async () => {
  const company = await annals.createCompany()
  const token = await invite(company, newEmail())
  const rows = await annals.app.database.db.selectFrom('one_time_link').selectAll().execute()
  const text = rows.map((row) => JSON.stringify({ ...row, token_hash: row.token_hash.toString() }))
  assert(text.length > 0 && !text.join('').includes(token))
})

const requestReset = (app: TestApp, email: string, address = '192.0.2.1') =>
  app.call('POST', '/dashboard/password-reset', {
    body: { email },
    headers: { 'x-forwarded-for': address },
  })

/** Everything that could reveal whether an account exists. */
const shown = ({ status, headers, json }: TestResponse) => ({
  status,
  json,
  names: [...headers.keys()],
})

test('a forgotten password sends a link by email that works once, for an hour', async () => {
  const company = await annals.createCompany()
  const unknown = await requestReset(annals, newEmail())
  const known = await requestReset(annals, company.user.email.toUpperCase())
  assert.equal(known.status, 202)
  assert.deepEqual(shown(known), shown(unknown))
  const mail = await eventually(() => {
    const found = smtp.mails.find(({ to }) => to.includes(company.user.email))
    assert(found)
    return found
  })
  assert.equal(mail.from, 'annals@example.com')
  assert.deepEqual(mail.to, [company.user.email])
  const text = mail.data.replaceAll('=\n', '').replaceAll('=3D', '=')
  const [, origin, token = ''] = /(http:\S+)\/app\/link#([\w-]{43})\s/.exec(text) ?? []
  assert.equal(origin, annals.url)
  assert.equal((await use(token)).status, 200)
  assert.equal((await use(token)).status, 404)
  const [entry] = await readAudit(annals, company)
  assert.equal(entry?.action, 'PASSWORD_RESET_REQUESTED')
  assert.equal(entry?.metadata.isMailed, true)
  assert.equal(smtp.mails.length, 1, 'nothing was sent to an address without an account')
})

test('the URL in an email is that of the operator, not of the request', async () => {
  await using server = await startSmtpServer()
  await using app = await startTestApp({ env: { ANNALS_SMTP_URL: server.url } })
  const company = await app.createCompany()
  const body = JSON.stringify({ email: company.user.email })
  await using connection = new RawConnection(app.url)
  connection.send(
    `POST /dashboard/password-reset HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: evil.example\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const mail = await eventually(() => {
    assert(server.mails[0])
    return server.mails[0]
  })
  assert(mail.data.includes(`${app.url}/app/link#`), mail.data)
  assert(!mail.data.includes('evil'))
})

test('the response is the same without a mail server, or with one that rejects the mail', async () => {
  await using refusing = await startSmtpServer({ refuses: true })
  for (const env of [{}, { ANNALS_SMTP_URL: refusing.url }]) {
    await using app = await startTestApp({ env })
    const company = await app.createCompany()
    const known = await requestReset(app, company.user.email)
    assert.deepEqual(shown(known), shown(await requestReset(app, newEmail())))
    assert.deepEqual(known.json, (await requestReset(annals, newEmail(), '192.0.2.200')).json)
    await eventually(async () => {
      const [entry] = await readAudit(app, company)
      assert.equal(entry?.action, 'PASSWORD_RESET_REQUESTED')
    })
    await enter(app, company.user)
  }
})

test('logs a rejected mail without its recipient', async () => {
  await using refusing = await startSmtpServer({ refuses: true })
  const lines: string[] = []
  const logger = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
  await using app = await startTestApp({ logger, env: { ANNALS_SMTP_URL: refusing.url } })
  const company = await app.createCompany()
  await requestReset(app, company.user.email)
  const line = await eventually(() => {
    const found = lines.find((text) => text.includes('mail.failed'))
    assert(found)
    return found
  })
  assert.match(line, /"responseCode":550/)
  assert(!lines.join('').includes(company.user.email))
  assert.deepEqual(refusing.mails, [])
})

test('limits repeated requests, whether or not the account exists', async () => {
  const { user } = await annals.createCompany()
  for (const [email, address] of [
    [user.email, '192.0.2.50'],
    [newEmail(), '192.0.2.51'],
  ] as const) {
    const responses: TestResponse[] = []
    for (let times = 0; times < 4; times += 1)
      responses.push(await requestReset(annals, email, address))
    assert.deepEqual(
      responses.map(({ status }) => status),
      [202, 202, 202, 429],
    )
    assert.equal(responses.at(-1)?.headers.get('retry-after'), '1800')
  }
})

test('limits link lookups per address', async () => {
  const statuses: number[] = []
  for (let tries = 0; tries < 62; tries += 1) {
    const { status } = await annals.call('POST', '/dashboard/links/look', {
      body: { token: `guess-${tries}` },
      headers: { 'x-forwarded-for': '192.0.2.90' },
    })
    statuses.push(status)
  }
  assert.deepEqual(statuses.slice(58), [404, 404, 429, 429])
})

test('the operator can print a link for a member who has no other way in', async () => {
  const company = await annals.createCompany()
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 1).toString('base64'),
    ANNALS_PUBLIC_URL: 'https://audit.example.com',
  }
  const { code, stdout, stderr } = await runCommandInHost(
    ['user', 'reset-link', '--email', company.user.email],
    env,
  )
  assert.equal(code, 0, stderr)
  const [, token = ''] =
    /^https:\/\/audit\.example\.com\/app\/link#([\w-]{43})\n$/.exec(stdout) ?? []
  assert.match(stderr, /new password for owner-.*works once and expires at \d{4}-/)
  const { db } = annals.app.database
  // The link expires by the machine's clock, but this service's clock is in another week.
  await db
    .updateTable('one_time_link')
    .set({ expires_at: new Date(clock() + MINUTE_MS) })
    .where('email', '=', company.user.email)
    .execute()
  assert.equal((await use(token)).status, 200)
  const [entry] = await readAudit(annals, company)
  assert.equal(entry?.action, 'PASSWORD_RESET_REQUESTED')
  assert.deepEqual(entry?.actor, { id: 'operator', role: 'operator' })
  assert.deepEqual(entry?.metadata, { email: company.user.email, address: 'command line' })
  const unknown = await runCommandInHost(
    ['user', 'reset-link', '--email', 'unknown@example.com'],
    env,
  )
  assert.equal(unknown.code, 1)
  assert.equal(unknown.stderr, 'annals: There is no account for unknown@example.com.\n')
})
