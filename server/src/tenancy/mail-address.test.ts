import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMailAddress, nameInMail } from './mail-address.ts'

test('accepts only a single address that every mail program reads the same way', () => {
  for (const text of [
    'a@ex.com',
    'ana.silva+audit@mail.example.co.uk',
    "o'neil_1=x@example.com",
    'josé@bücher.example',
    'a@localhost',
  ]) {
    assert(isMailAddress(text), text)
  }
  for (const text of [
    'a@ex.com>',
    '<a@ex.com',
    'a@ex.com,b@ex.com',
    'a@ex.com;b',
    '"a"@ex.com',
    'a(b)@ex.com',
    'group:a@ex.com',
    'a@b@ex.com',
    'a b@ex.com',
    'a@ex.com\r\nbcc:x',
    'a\u0000@ex.com',
    'a\u200b@ex.com',
    'www.example.com/a@ex.com',
    '@ex.com',
    'a@',
  ]) {
    assert(!isMailAddress(text), text)
  }
})

test('quotes a name in an email on one line, shortened and without links', () => {
  assert.equal(nameInMail('Acme & Sons, Inc.'), '"Acme & Sons, Inc."')
  assert.equal(nameInMail('Win\r\nBcc: x@y.example\u2028now'), '"Win Bcc: x@ y. example now"')
  assert.equal(nameInMail('https://evil.example/a'), '"https: / / evil. example/ a"')
  assert.equal(nameInMail('www.evil.example'), '"www. evil. example"')
  assert.equal(nameInMail('evil。example'), '"evil。 example"')
  assert.equal(nameInMail('A" <b'), '"A\' <b"')
  assert.equal(nameInMail('x'.repeat(200)), `"${'x'.repeat(79)}…"`)
})
