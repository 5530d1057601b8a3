import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextMailAt, noticeMail } from './notice-mail.ts'

const options = { to: 'ana@example.com', workspaceName: null, baseUrl: 'https://annals.example' }

test('a name in a notice adds no lines to the mail and nothing to its subject', () => {
  const message = 'The key a\r\nSubject: b\u2028c\u0000 expires.'
  const notice = { kind: 'KEY_EXPIRING', message, link: '/app/keys' } as const
  const { subject, text } = noticeMail(notice, { ...options, workspaceName: 'Two\nlines' })
  assert.equal(subject, 'Annals: A key expires soon')
  assert.deepEqual(text.split('\n\n'), [
    'The key a Subject: b c expires.',
    'Workspace: "Two lines"',
    'https://annals.example/app/keys',
    'To choose which notices you get by mail, open https://annals.example/app/account\n',
  ])
})

test('a name in a notice never becomes a link', () => {
  const message =
    'The webhook Locked, see https://evil.example/in was disabled at 2026-03-01 14:05 UTC. 99.5 % failed.'
  const notice = { kind: 'WEBHOOK_DISABLED', message, link: '/app/webhooks' } as const
  assert.equal(
    noticeMail(notice, options).text.split('\n')[0],
    'The webhook Locked, see https: / / evil. example/ in was disabled at 2026-03-01 14:05 UTC. 99.5 % failed.',
  )
})

test('a refused mail is tried again after a minute, ten minutes and an hour', () => {
  const waits = [1, 2, 3, 4].map((attempt) => nextMailAt(attempt, 0)?.getTime() ?? null)
  assert.deepEqual(waits, [60_000, 600_000, 3_600_000, null])
})
