import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMailAddress, quoteNameForMail } from './mail-address.ts'

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

test('accepts one spelling of a domain', () => {
  for (const text of ['a@Bücher.Example', 'A@EX.com']) assert(isMailAddress(text), text)
  for (const text of ['a@ex.com.', 'a@xn--bcher-kva.example', 'a@ｅx.com', 'a@ex。com', 'a@1.2']) {
    assert(!isMailAddress(text), text)
  }
})

test('quotes a name in an email on one line, shortened and without links', () => {
  assert.equal(quoteNameForMail('Acme & Sons, Inc.'), '"Acme & Sons, Inc."')
  assert.equal(quoteNameForMail('Win\r\nBcc: x@y.example\u2028now'), '"Win Bcc: x@ y. example now"')
  assert.equal(quoteNameForMail('https://evil.example/a'), '"https: / / evil. example/ a"')
  assert.equal(quoteNameForMail('www.evil.example'), '"www. evil. example"')
  assert.equal(quoteNameForMail('evil。example'), '"evil。 example"')
  assert.equal(quoteNameForMail('A" <b'), '"A\' <b"')
  assert.equal(quoteNameForMail('x'.repeat(200)), `"${'x'.repeat(79)}…"`)
})
