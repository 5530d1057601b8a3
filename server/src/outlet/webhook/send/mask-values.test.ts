import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maskValues } from './mask-values.ts'

const mask = (text: string, ...values: string[]) => maskValues(text, values, { isCut: false })

test('masks every occurrence of every value, and nothing else', () => {
  assert.equal(mask('a=1, b=22, a=1', '1', '22'), 'a=***, b=***, a=***')
  assert.equal(mask('abcabd', 'abd'), 'abc***')
  assert.equal(mask('aaaa', 'aaa'), '***')
  assert.equal(mask('nothing to hide', 'secret'), 'nothing to hide')
  assert.equal(mask('', 'secret'), '')
  assert.equal(mask('no values'), 'no values')
})

test('masks a longer value as a whole if another one is a part of it', () => {
  assert.equal(mask('<key-12345>', 'key', 'key-12345'), '<***>')
})

test('masks the JSON-escaped form of a value', () => {
  const value = String.raw`a "quoted\" token`
  assert.equal(mask(JSON.stringify({ value }), value), '{"value":"***"}')
})

test('masks a value however its characters are escaped', () => {
  const value = `a/b+c<d>&'e"=\\`
  const spellings = [
    String.raw`a\/b+c<d>&'e\"=\\`,
    String.raw`a/b\u002Bc\u003Cd\u003E\u0026\u0027e\u0022=\\`,
    String.raw`a/b+c\u003cd\u003e\u0026\u0027e\"\u003d\u005c`,
    encodeURIComponent(value),
    encodeURIComponent(value).toLowerCase(),
  ]
  for (const spelling of spellings) {
    assert.equal(mask(`\\n"${spelling}" \\u0020%20`, value), '\\n"***" \\u0020%20', spelling)
  }
})

test('masks the beginning of a value at the end of a text that is cut in an escape', () => {
  for (const end of ['a\\', 'a\\u', 'a\\u00', 'a\\u002B', 'a%', 'a%2', 'a%2b']) {
    assert.equal(maskValues(`echo: ${end}`, ['a+bcdefghij'], { isCut: true }), 'echo: ***', end)
  }
})

test('masks credentials without their scheme, but not short ones', () => {
  assert.equal(
    mask('the token 0123456789 is unknown', 'Bearer 0123456789'),
    'the token *** is unknown',
  )
  assert.equal(mask('the team is unknown', 'our team'), 'the team is unknown')
})

test('masks the beginning of a value at the end of a text that is cut', () => {
  assert.equal(maskValues('echo: secr', ['secret'], { isCut: true }), 'echo: ***')
  assert.equal(maskValues('echo: secr', ['secret'], { isCut: false }), 'echo: secr')
  assert.equal(maskValues('echo: secretsecr', ['secret'], { isCut: true }), 'echo: ***')
})

test('takes linear time, even for a text that almost matches everywhere', () => {
  const values = Array.from({ length: 10 }, (_, nth) => `${'a'.repeat(1_000 + nth)}b`)
  const text = 'a'.repeat(163_840)
  const before = process.threadCpuUsage()
  assert.equal(maskValues(text, values, { isCut: false }), text)
  assert(process.threadCpuUsage(before).user < 500_000)
})
