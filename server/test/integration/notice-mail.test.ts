import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createLogger } from '../../src/platform/logger.ts'
import { newId } from '../../src/platform/id.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { updateMemberGrant } from '../../src/tenancy/member/member-store.ts'
import {
  MAILS_PER_MEMBER_AND_HOUR_MAX,
  startNoticeMailWorker,
} from '../../src/tenancy/notice/notice-mail-worker.ts'
import { raiseNotices } from '../../src/tenancy/notice/notice-store.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { draftFor } from '../harness/dashboard/notices.ts'
import { type SmtpServer, startSmtpServer } from '../harness/dashboard/smtp-server.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
// Without mail, so that only the workers of the tests send any.
const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database
const asOwner = (statement: string) => query(annals.database.connection, statement)

/** The part of a node that sends mail. */
function startNode({ url }: Pick<SmtpServer, 'url'>, atMs: number = Date.now()) {
  const cut = new AbortController()
  const worker = startNoticeMailWorker({
    db,
    clock: () => atMs,
    logger: createLogger('silent'),
    smtpUrl: new Secret(url),
    baseUrl: 'https://annals.example',
    cutSignal: cut.signal,
  })
  return { cut, worker }
}

async function sendAt(smtp: Pick<SmtpServer, 'url'>, atMs?: number): Promise<void> {
  const { worker } = startNode(smtp, atMs)
  await worker.runNow()
  await worker[Symbol.asyncDispose]()
}

const recipientsOf = ({ mails }: SmtpServer) => mails.flatMap(({ to }) => to).toSorted()

/** A company whose only member is the returned one. */
async function createWithOwner() {
  const company = await annals.createCompany()
  await db.deleteFrom('app_user').where('company_id', '=', company.company.id).execute()
  return { company, owner: await signInAs(annals, company, 'OWNER') }
}

const raise = (company: CreatedCompany, draft = {}) =>
  raiseNotices(db, [draftFor(company, { cause: newId(), ...draft })], Date.now())

test('nodes that send at the same time send one mail to each member who can see the notice', async () => {
  await using smtp = await startSmtpServer()
  const { company, owner } = await createWithOwner()
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  await signInAs(annals, company, 'VIEWER', [])
  await signInAs(annals, await annals.createCompany(), 'OWNER')
  await raise(company, { message: 'The webhook\nexample.com was disabled.' })
  const nodes = Array.from({ length: 4 }, () => startNode(smtp).worker)
  await Promise.all(nodes.map((node) => node.runNow()))
  await Promise.all(nodes.map((node) => node.runNow()))
  for (const node of nodes) await node[Symbol.asyncDispose]()
  assert.deepEqual(recipientsOf(smtp), [owner.email, viewer.email].toSorted())
  const { data = '' } = smtp.mails[0] ?? {}
  assert.match(data, /^Subject: Annals: A webhook was disabled$/m)
  assert.match(data, /^The webhook example\. com was disabled\.$/m)
  assert.match(data, /^https:\/\/annals\.example\/app\/webhooks$/m)
  assert.match(data, /^Workspace: "Production"$/m)
})

test('a member gets no mail about a kind that they turned off', async () => {
  await using smtp = await startSmtpServer()
  const { company, owner } = await createWithOwner()
  const path = '/dashboard/notices/mail'
  const before = await owner.call('GET', path)
  assert.deepEqual([before.json.isConfigured, before.json.off], [false, []])
  assert.equal(before.json.kinds.length, 9)
  const off = ['WEBHOOK_DISABLED', 'CHAIN_BROKEN']
  const { status, json } = await owner.call('PUT', path, { body: { off } })
  assert.deepEqual([status, json.off], [200, off.toSorted()])
  await owner.call('PUT', path, { body: { off: off.toReversed() } })
  await raise(company)
  await raise(company, { kind: 'KEY_EXPIRING' })
  await sendAt(smtp)
  assert.equal(smtp.mails.length, 1)
  assert.match(smtp.mails[0]?.data ?? '', /A key expires soon/)
  const entries = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'NOTICE_MAIL_CHANGED',
  )
  assert.deepEqual(
    entries.map(({ resource, metadata }) => [resource.id, metadata.after.off]),
    [[owner.userId, off.toSorted()]],
  )
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const { kinds } = (await viewer.call('GET', path)).json
  assert(!kinds.includes('KEY_EXPIRING') && kinds.includes('CHAIN_BROKEN'), String(kinds))
})

test('a mail that the server refuses for now is sent later, at most four times', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  const nowMs = Date.now()
  await using smtp = await startSmtpServer({ replyTo: () => 'later' })
  for (const minutes of [0, 0.5, 1.5, 2, 12, 15, 73, 80, 600]) {
    await sendAt(smtp, nowMs + minutes * MINUTE_MS)
  }
  assert.equal(smtp.mails.length, 4)
  await raise(company)
  await using once = await startSmtpServer({ replyTo: (nth) => (nth === 1 ? 'later' : 'accept') })
  for (const minutes of [0, 1.5, 12, 73]) await sendAt(once, nowMs + minutes * MINUTE_MS)
  assert.equal(once.mails.length, 2)
})

test('mails that the server refuses for now do not delay those of another company', async () => {
  const noisy = await createWithOwner()
  for (let nth = 0; nth < 30; nth += 1) await raise(noisy.company)
  const quiet = await createWithOwner()
  await raise(quiet.company)
  await using smtp = await startSmtpServer({ replyTo: () => 'later' })
  await sendAt(smtp)
  const [first, second] = smtp.mails.map(({ to }) => to.join())
  assert.deepEqual([first, second], [noisy.owner.email, quiet.owner.email])
  assert.equal(smtp.mails.length, 20, 'the rest of the run')
  await asOwner('delete from notice_mail')
})

test('a mail that the server cannot have accepted is sent again', async () => {
  const { company } = await createWithOwner()
  const nowMs = Date.now()
  const faults = [
    { cutsAt: 'EHLO' },
    { cutsAt: 'MAIL' },
    { cutsAt: 'RCPT' },
    { cutsAt: 'DATA' },
    { offersTls: true },
  ] as const
  for (const fault of faults) {
    await raise(company)
    await using broken = await startSmtpServer(fault)
    await sendAt(broken, nowMs)
    assert.deepEqual([broken.mails.length, broken.connections], [0, 1], JSON.stringify(fault))
    await using healthy = await startSmtpServer()
    await sendAt(healthy, nowMs + 2 * MINUTE_MS)
    assert.equal(healthy.mails.length, 1, JSON.stringify(fault))
  }
})

test('a mail for an address that the server refuses for good is not tried again', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  await using refusing = await startSmtpServer({ refuses: true })
  await sendAt(refusing)
  await using accepting = await startSmtpServer()
  await sendAt(accepting, Date.now() + 2 * HOUR_MS)
  assert.deepEqual([refusing.connections, accepting.mails.length], [1, 0])
})

test('a mail that the server may have accepted is not sent again', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  await using smtp = await startSmtpServer({ replyTo: () => 'cut' })
  await sendAt(smtp)
  await sendAt(smtp, Date.now() + 2 * HOUR_MS)
  assert.equal(smtp.mails.length, 1)
})

test('a node stores the outcome of a mail after an outage of the database', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  await using smtp = await startSmtpServer()
  const { worker } = startNode(smtp)
  const statuses = async () =>
    (
      await db
        .selectFrom('notice_mail')
        .select('status')
        .where('company_id', '=', company.company.id)
        .execute()
    ).map(({ status }) => status)
  await asOwner(`
    create function refuse_end() returns trigger language plpgsql as $$
      begin raise exception 'outage' using errcode = '57P01'; end $$`)
  await asOwner(`
    create trigger refuse_end before update on notice_mail
    for each row when (new.status = 'SENT') execute function refuse_end()`)
  await worker.runNow()
  assert.deepEqual([await statuses(), smtp.mails.length], [['SENDING'], 1])
  await asOwner(`
drop function refuse_end cascade`)
  await worker.runNow()
  await worker[Symbol.asyncDispose]()
  assert.deepEqual([await statuses(), smtp.mails.length], [['SENT'], 1])
})

test('a mail that a node has claimed is sent by no other node, even if it crashed hours ago', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  await using hanging = await startSmtpServer({ hangs: true })
  const { cut, worker } = startNode(hanging)
  const running = worker.runNow()
  await eventually(() => assert.equal(hanging.connections, 1))
  await using smtp = await startSmtpServer()
  await sendAt(smtp, Date.now() + 2 * HOUR_MS)
  assert.equal(smtp.mails.length, 0)
  // A server that hangs doesn't delay the shutdown either.
  cut.abort()
  await within(5_000, running)
  await worker[Symbol.asyncDispose]()
  // Now it is certain that the node sent nothing.
  await sendAt(smtp, Date.now() + 4 * HOUR_MS)
  assert.equal(smtp.mails.length, 1)
})

test('a server that was never reached gets the mail later, unless the member lost access', async () => {
  const { company, owner } = await createWithOwner()
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  await raise(company)
  const nowMs = Date.now()
  // Nothing listens there. One attempt per run, because the next one would fail too.
  for (const seconds of [0, 1]) await sendAt({ url: 'smtp://127.0.0.1:1' }, nowMs + seconds * 1_000)
  await updateMemberGrant(db, viewer.userId, { role: 'VIEWER', workspaceIds: [] })
  await using smtp = await startSmtpServer()
  await sendAt(smtp, nowMs + 2 * MINUTE_MS)
  assert.deepEqual(recipientsOf(smtp), [owner.email])
})

test('a member gets at most 20 mails per hour', async () => {
  const { company } = await createWithOwner()
  const nowMs = Date.now()
  const raiseMany = (count: number) =>
    raiseNotices(
      db,
      Array.from({ length: count }, () => draftFor(company, { cause: newId() })),
      nowMs,
    )
  await raiseMany(MAILS_PER_MEMBER_AND_HOUR_MAX + 5)
  await using smtp = await startSmtpServer()
  for (const seconds of [0, 1, 2]) await sendAt(smtp, nowMs + seconds * 1_000)
  assert.equal(smtp.mails.length, MAILS_PER_MEMBER_AND_HOUR_MAX)
  // Other notices can't suppress it.
  await raise(company, { kind: 'CHAIN_BROKEN' })
  await sendAt(smtp, nowMs + 3_000)
  assert.equal(smtp.mails.length, MAILS_PER_MEMBER_AND_HOUR_MAX + 1)
  await raiseMany(1)
  await sendAt(smtp, nowMs + HOUR_MS + MINUTE_MS)
  assert.equal(smtp.mails.length, MAILS_PER_MEMBER_AND_HOUR_MAX + 2)
})

test('a notice that is older than a day gets no mail', async () => {
  const { company } = await createWithOwner()
  await raise(company)
  await using smtp = await startSmtpServer()
  await sendAt(smtp, Date.now() + 25 * HOUR_MS)
  assert.equal(smtp.mails.length, 0)
})

test('a service with a mail server sends notices with links to its public URL', async () => {
  await using smtp = await startSmtpServer()
  await using app = await startTestApp({
    env: { ANNALS_SMTP_URL: smtp.url, ANNALS_PUBLIC_URL: 'http://audit.example/' },
  })
  const company = await app.createCompany()
  const owner = await signInAs(app, company, 'OWNER')
  assert.equal((await owner.call('GET', '/dashboard/notices/mail')).json.isConfigured, true)
  await raiseNotices(app.app.database.db, [draftFor(company)], Date.now())
  const mail = await eventually(() => {
    assert(smtp.mails[0])
    return smtp.mails[0]
  })
  assert.equal(mail.to.length, 1)
  assert.match(mail.data, /^http:\/\/audit\.example\/app\/webhooks$/m)
})
