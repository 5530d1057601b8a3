import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { runAtOnce } from '../../../platform/scheduling/time-slice.ts'
import { layoutsOf } from './json-layout.ts'

const anySpace = fc.constantFrom('', '  ', '\t\r\n')

test('lays out JSON like JSON.stringify, whatever its layout is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), anySpace, anySpace, (value, space, end) => {
      const text = JSON.stringify(value, null, space) + end
      assert.deepEqual(runAtOnce(layoutsOf(text)), {
        compact: JSON.stringify(value),
        pretty: JSON.stringify(value, null, 2),
      })
    }),
    { numRuns: rounds(200, 10_000) },
  )
})

test('lays out a text that is not JSON without losing anything but whitespace', () => {
  for (const text of [
    '',
    ' ',
    'a b',
    '"a',
    '"a\\',
    '}{',
    '"\\"'.repeat(50_000),
    ']'.repeat(9_999),
  ]) {
    assert.equal(runAtOnce(layoutsOf(text)).compact, text.replaceAll(' ', ''))
  }
})

test('pretty-prints no text that would become much larger', () => {
  assert.equal(runAtOnce(layoutsOf('['.repeat(10_000))).pretty, null)
})
