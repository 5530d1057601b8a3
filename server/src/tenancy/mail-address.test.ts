import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMailAddress, nameInMail } from './mail-address.ts'

test('an address is one address and nothing that a mail program reads otherwise', () => {
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

test('a name in a mail is quoted, on one line, short, and no link', () => {
  assert.equal(nameInMail('Acme & Sons, Inc.'), '"Acme & Sons, Inc."')
  assert.equal(nameInMail('Win\r\nBcc: x@y.example\u2028now'), '"Win Bcc: x@ y. example now"')
  assert.equal(nameInMail('https://evil.example/a'), '"https: / / evil. example/ a"')
  assert.equal(nameInMail('www.evil.example'), '"www. evil. example"')
  assert.equal(nameInMail('evil。example'), '"evil。 example"')
  assert.equal(nameInMail('A" <b'), '"A\' <b"')
  assert.equal(nameInMail('x'.repeat(200)), `"${'x'.repeat(79)}…"`)
})
