import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passwordFault } from './password-rules.ts'

const EMAIL = 'ana.silva@example.com'

const REFUSED: readonly [password: string, why: RegExp][] = [
  ['', /at least 10/],
  ['ninechars', /at least 10/],
  ['👍'.repeat(9), /at least 10/],
  ['ab1!'.repeat(50) + 'x', /more than 200/],
  [EMAIL, /email/],
  ['Ana.Silva@Example.COM', /email/],
  ['password123', /common/],
  ['Qwertyuiop', /common/],
  // Full-width digits normalize to ASCII digits.
  ['１２３４５６７８９０', /common/],
  ['aaaaaaaaaaaa', /too few different/],
]

for (const [password, why] of REFUSED) {
  test(`rejects ${JSON.stringify(password.slice(0, 24))} as a password`, () => {
    assert.match(passwordFault(password, { email: EMAIL }) ?? '', why)
  })
}

test('accepts ten to two hundred characters of any alphabet', () => {
  for (const password of ['correct ho', 'ab1!'.repeat(50), 'мой пароль', '👍 ça va bien']) {
    assert.equal(passwordFault(password, { email: EMAIL }), null)
  }
})
