import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newRecoveryCodes, recoveryHash } from './recovery-code.ts'

test('a set has ten different codes in groups that are easy to copy', () => {
  const codes = newRecoveryCodes()
  assert.equal(new Set(codes).size, 10)
  for (const code of codes) assert.match(code, /^[A-Z2-7]{4}(-[A-Z2-7]{4}){3}$/)
  assert.notDeepEqual(newRecoveryCodes(), codes)
})

test('a code is recognized in any spelling', () => {
  const [code = ''] = newRecoveryCodes()
  const expected = recoveryHash(code)
  assert.equal(expected?.length, 32)
  for (const text of [
    code.toLowerCase(),
    code.replaceAll('-', ''),
    ` ${code.replaceAll('-', ' ')} `,
  ])
    assert.deepEqual(recoveryHash(text), expected)
})

test('other text is not a recovery code', () => {
  for (const text of [
    '',
    '123456',
    'AAAA-AAAA-AAAA-AAA',
    'AAAA-AAAA-AAAA-AAAAA',
    'AAAA-AAAA-AAAA-AAA1',
  ])
    assert.equal(recoveryHash(text), null, text)
})
