import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { startSmtpServer } from '../harness/dashboard/smtp-server.ts'
import { startTestApp } from '../harness/app/start-app.ts'

/** The subject of a mail. Words are Q-encoded if it contains quotes. */
function subjectOf(data: string): string {
  const [, folded = ''] = /^Subject: (.*(?:\r?\n[ \t].*)*)/m.exec(data) ?? []
  return folded
    .replaceAll(/\?=\s+=\?UTF-8\?Q\?/g, '')
    .replaceAll(/=\?UTF-8\?Q\?|\?=/g, '')
    .replaceAll('_', ' ')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
}

test('if mail is configured, an invited person also gets the link by email', async () => {
  await using smtp = await startSmtpServer()
  await using app = await startTestApp({ env: { ANNALS_SMTP_URL: smtp.url } })
  const company = await app.createCompany({ company: 'Acme & Sons\r\nwww.evil.example' })
  const owner = await documented(await signInAs(app, company, 'OWNER'))
  const email = `${newId()}@example.com`
  const { json } = await owner.call('POST', '/dashboard/invitations', {
    body: { email, role: 'ADMIN' },
  })
  assert.equal(json.isMailed, true)
  const mail = await eventually(() => {
    assert(smtp.mails[0])
    return smtp.mails[0]
  })
  assert.deepEqual(mail.to, [email])
  const text = mail.data.replaceAll('=\n', '').replaceAll('=3D', '=')
  assert(text.includes(json.link), text)
  // Whatever the company's name is, it doesn't become a link and stays on its line.
  const name = '"Acme & Sons www. evil. example"'
  assert.equal(subjectOf(mail.data), `You're invited to ${name} on Annals`)
  assert(text.includes(`${owner.email} invited you to the audit log of ${name}. `), text)
})

test('a mail server that hangs delays the shutdown by less than five seconds', async () => {
  await using smtp = await startSmtpServer({ hangs: true })
  await using app = await startTestApp({ env: { ANNALS_SMTP_URL: smtp.url } })
  const owner = await signInAs(app, await app.createCompany(), 'OWNER')
  const body = { email: `${newId()}@example.com`, role: 'ADMIN' }
  assert.equal((await owner.call('POST', '/dashboard/invitations', { body })).status, 201)
  await eventually(() => assert.equal(smtp.connections, 1))
  await within(5_000, app[Symbol.asyncDispose]())
})

test('an invitation is sent only to the complete address that was given', async () => {
  await using app = await startTestApp()
  const admin = await documented(await signInAs(app, await app.createCompany(), 'ADMIN'))
  for (const email of ['a@ex.com>', '<a@ex.com', 'a@ex.com,b@ex.com', '"a"@ex.com']) {
    const { status, json } = await admin.call('POST', '/dashboard/invitations', {
      body: { email, role: 'ADMIN' },
    })
    assert.deepEqual([status, json.code], [400, 'invalid_request'], email)
    assert.equal(json.details[0].path, '/email')
  }
  const email = `ana+audit.${newId()}@bücher.example`
  const { status } = await admin.call('POST', '/dashboard/invitations', {
    body: { email, role: 'ADMIN' },
  })
  assert.equal(status, 201)
})
