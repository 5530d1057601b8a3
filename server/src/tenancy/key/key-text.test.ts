import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { hashSecret, matchesSecret, createKeyText, parseKeyText, prefixOf } from './key-text.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(text: string): bigint {
  return text.split('').reduce((value, digit) => value * 62n + BigInt(DIGITS.indexOf(digit)), 0n)
}

test('a key is annals_<kid>_<secret>_<crc32> in base62 and parses back into its parts', () => {
  const { text, kid, secret, prefix } = createKeyText()
  assert.match(text, /^annals_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/)
  assert.deepEqual(parseKeyText(text), { kid, secret })
  assert.equal(prefix, `annals_${kid}`)
  assert.equal(prefixOf(kid), prefix)
  assert(text.startsWith(prefix))
})

test('a secret has 256 bits: every bit is set in some of 200 keys and clear in others', () => {
  const values = Array.from({ length: 200 }, () => base62(createKeyText().secret))
  assert.equal(new Set(values).size, 200)
  for (let bit = 0n; bit < 256n; bit++) {
    const isSet = values.filter((value) => ((value >> bit) & 1n) === 1n).length
    assert(isSet > 40 && isSet < 160, `bit ${bit} is set in ${isSet} of 200`)
  }
  assert(values.every((value) => value < 1n << 256n))
})

test('detects any single changed character of a key as a typo', () => {
  const { text } = createKeyText()
  for (let index = 0; index < text.length; index++) {
    for (const digit of ['0', 'z', '_', 'é', ' ']) {
      if (text[index] === digit) continue
      const typo = text.slice(0, index) + digit + text.slice(index + 1)
      assert.equal(parseKeyText(typo), null, `character ${index} changed to "${digit}"`)
    }
  }
})

test('detects two swapped neighboring characters as a typo', () => {
  const { text } = createKeyText()
  for (let index = 0; index + 1 < text.length; index++) {
    const [a = '', b = ''] = text.slice(index)
    if (a === b) continue
    assert.equal(parseKeyText(text.slice(0, index) + b + a + text.slice(index + 2)), null)
  }
})

test('accepts only the complete text as a key', () => {
  const { text } = createKeyText()
  const shapes = ['', 'annals', text.slice(0, -1), `${text}0`, ` ${text}`, `${text}\n`, text + text]
  for (const shape of [...shapes, text.toUpperCase(), text.replaceAll('_', '-')]) {
    assert.equal(parseKeyText(shape), null, JSON.stringify(shape))
  }
})

test('stores only the SHA-256 of the secret, which only that secret matches', () => {
  const mine = createKeyText()
  const other = createKeyText()
  assert.deepEqual(mine.secretHash, createHash('sha256').update(mine.secret).digest())
  assert.deepEqual(hashSecret(mine.secret), mine.secretHash)
  assert(matchesSecret(mine.secret, mine.secretHash))
  assert(!matchesSecret(other.secret, mine.secretHash))
  assert(!matchesSecret('', mine.secretHash))
})
