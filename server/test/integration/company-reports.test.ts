import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ANNALS, runAnnals } from '../harness/app/annals-process.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const env = {
  ANNALS_DATABASE_URL: annals.database.url,
  ANNALS_ARCHIVE_URL: annals.archiveUrl,
  ANNALS_SECRET_KEY: SECRET_KEY,
}
const UNKNOWN_ID = '00000000-0000-7000-8000-000000000000'

async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommandInHost(args, env)
  assert.equal(code, 0, stderr)
  return stdout
}

// oxlint-disable-next-line typescript/no-explicit-any -- a test reads any field it expects
async function linesOf(...args: string[]): Promise<any[]> {
  return (await printed(...args, '--json'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

async function send(key: string, count: number) {
  const events = Array.from({ length: count }, () => ({ category: 'auth', action: 'user.login' }))
  const { status } = await annals.call('POST', '/v1/events/batch', { key, body: { events } })
  assert.equal(status, 200)
}

test('company list and show agree with what a company has', async () => {
  const made = await annals.createCompany({
    company: 'Reported',
    plan: 'PRO',
    workspaces: ['One', 'Two'],
  })
  await send(made.workspaceKey, 3)
  const webhookId = await makeWebhook(annals, made, { url: 'https://receiver.example/hook' })
  await eventually(async () => {
    const listed = (await linesOf('company', 'list')).find(({ id }) => id === made.company.id)
    const { createdAt, ...rest } = listed
    assert(Math.abs(Date.parse(createdAt) - Date.now()) < 600_000)
    assert.deepEqual(rest, {
      id: made.company.id,
      name: 'Reported',
      plan: 'PRO',
      workspaces: 2,
      members: 1,
      eventsThisMonth: 3,
    })
  })
  const [shown] = await linesOf('company', 'show', '--company', made.company.id)
  assert.equal(shown.limits.hotDays, 90)
  assert.equal(shown.usage.eventsThisMonth, 3)
  assert(shown.usage.bytesToday > 0)
  assert.deepEqual(shown.counts, {
    workspaces: 2,
    members: 1,
    companyKeys: 1,
    views: 0,
    openExports: 0,
  })
  const one = shown.workspaces.find(({ name }: { name: string }) => name === 'One')
  assert.deepEqual([one.events, one.keys, one.projects, one.webhooks], [3, 1, 1, 1])
  assert.deepEqual(
    shown.webhooks.map(({ id, url, status }: Record<string, string>) => [id, url, status]),
    [[webhookId, 'https://receiver.example/hook', 'ENABLED']],
  )
  const text = await printed('company', 'show', '--company', made.company.id)
  for (const part of ['Reported', 'PRO', '90 days', made.workspace.id, webhookId, 'audit log']) {
    assert(text.includes(part), part)
  }
})

test('company list pages through more companies than it reads at once, each once and oldest first', async () => {
  const other = await annals.createCompany()
  await query(
    connection,
    `insert into company (id, name, plan, allowlist)
     select ('00000000-0000-7000-8000-' || lpad(nth::text, 12, '0'))::uuid, 'Many ' || nth, 'FREE', '{}'
       from generate_series(1, 450) as nth`,
  )
  const ids = (await linesOf('company', 'list')).map(({ id }) => id)
  assert(ids.length > 450)
  assert.equal(new Set(ids).size, ids.length)
  assert(ids.every((id, nth) => nth === 0 || ids[nth - 1] < id))
  assert(ids.includes(other.company.id))
  const text = await printed('company', 'list')
  assert.equal(text.match(/^ID /gm)?.length, 1)
  assert.equal(text.trimEnd().split('\n').length, ids.length + 1)
})

test('a list whose reader has seen enough ends quietly', async () => {
  const script = `{ ${ANNALS} company list --json; } | head -1`
  const { stdout, stderr } = await runAnnals([], env, ['sh', '-c', script])
  assert.equal(stderr, '')
  assert.equal(stdout.trimEnd().split('\n').length, 1)
})

/** Control and bidirectional characters, except line breaks. */
const HIDDEN = /(?!\n)[\p{Cc}\u202E]/u

test('an error that quotes a text has no line that looks like another message', async () => {
  const { code, stderr } = await runCommandInHost(['user', 'show', '--email', 'x\nok: all'], env)
  assert.equal(code, 1)
  assert.equal(stderr, 'annals: There is no account for x\n  ok: all.\n')
})

test('control characters in stored names cannot reach a terminal', async () => {
  const name = 'Acme\u001b[2J\u202e\u009b\nsecond'
  const { company } = await annals.createCompany({ company: name })
  for (const args of [
    ['company', 'list'],
    ['company', 'show', '--company', company.id],
  ]) {
    const text = await printed(...args)
    assert(text.includes(String.raw`Acme\u001b[2J\u202e\u009b\u000asecond`), text)
    assert.doesNotMatch(text, HIDDEN)
    assert.doesNotMatch(await printed(...args, '--json'), HIDDEN)
  }
  const [shown] = await linesOf('company', 'show', '--company', company.id)
  assert.equal(shown.name, name)
})

test('user list and show print role, workspaces, second factor, link and last use', async () => {
  const made = await annals.createCompany({ workspaces: ['Sales', 'Ops'], email: 'own@r.example' })
  const member = '00000000-0000-7000-9000-000000000001'
  await query(
    connection,
    `insert into app_user (id, company_id, email, password_hash, role)
     values ('${member}', '${made.company.id}', 'ann@r.example', null, 'ANALYST');
     insert into user_workspace (user_id, workspace_id)
     values ('${member}', '${made.workspace.id}');
     insert into user_identity (user_id, issuer, subject, linked_at, used_at)
     values ('${member}', 'https://id.example', 's-1', now(), '2026-03-01T00:00:00Z');
     insert into second_factor (user_id, secret, created_at, confirmed_at)
     values ('${member}', 'x', now(), now())`,
  )
  const members = await linesOf('user', 'list', '--company', made.company.id)
  const ann = members.find(({ email }) => email === 'ann@r.example')
  assert.deepEqual(
    members.map(({ email, role }) => [email, role]),
    [
      ['own@r.example', 'OWNER'],
      ['ann@r.example', 'ANALYST'],
    ],
  )
  assert.deepEqual(ann.workspaces, [{ id: made.workspace.id, name: 'Sales' }])
  assert.equal(ann.hasSecondFactor, true)
  const [shown] = await linesOf('user', 'show', '--email', 'Ann@R.example')
  assert.deepEqual(shown, { ...ann, hasPassword: false })
  const text = await printed('user', 'show', '--email', 'ann@r.example')
  assert.match(text, /Linked to +s-1 at https:\/\/id\.example, last used 2026-03-01/)
  assert.match(text, /Workspaces +Sales\n/)
  assert.match(await printed('user', 'list', '--company', made.company.id), /own@r\.example +OWNER/)
  const login = await annals.call('POST', '/dashboard/session', {
    body: { email: 'own@r.example', password: 'correct horse' },
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  assert.equal(login.status, 200)
  const [owner] = await linesOf('user', 'show', '--email', 'own@r.example')
  assert.equal(owner.workspaces, null)
  assert.equal(owner.hasPassword, true)
  assert(Math.abs(Date.parse(owner.lastSeenAt) - Date.now()) < 600_000)
})

test('no report contains a password hash, a key or a secret', async () => {
  const made = await annals.createCompany({ email: 'plain@r.example' })
  await makeWebhook(annals, made, { url: 'https://receiver.example/' })
  const texts = await Promise.all([
    printed('company', 'show', '--json', '--company', made.company.id),
    printed('user', 'show', '--json', '--email', 'plain@r.example'),
  ])
  for (const text of texts) assert.doesNotMatch(text, /argon|whsec|annals_|passwordHash|"secret/)
})

test('an unknown company or member gets a clear message', async () => {
  for (const args of [
    ['company', 'show', '--company', UNKNOWN_ID],
    ['company', 'show', '--company', 'acme'],
    ['user', 'list', '--company', UNKNOWN_ID],
  ]) {
    const { code, stdout, stderr } = await runCommandInHost(args, env)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /^annals: There is no company with the id .*annals company list\n$/)
  }
  const { code, stderr } = await runCommandInHost(
    ['user', 'show', '--email', 'no@one.example'],
    env,
  )
  assert.equal(code, 1)
  assert.match(stderr, /^annals: There is no account for no@one\.example\.\n$/)
})
