import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../errors.ts'
import { readName } from './name-input.ts'

test('a name is trimmed, and can have any visible characters', () => {
  assert.equal(readName(' Zoë’s “key” 🎉 '), 'Zoë’s “key” 🎉')
})

for (const [what, text] of [
  ['blank', ' \t'],
  ['several lines long', 'one\ntwo'],
  ['several paragraphs long', 'one\u2029two'],
  ['partly in reverse', 'gnp.\u202Eexe'],
] as const) {
  test(`a name that is ${what} is refused`, () => {
    assert.throws(() => readName(text), ApiError)
  })
}
