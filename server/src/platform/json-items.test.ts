import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { sliceItems } from './json-items.ts'
import { parseStrictJson } from './strict-json.ts'

/** Strings full of what a careless reader would take for structure. */
const anyText = fc.string({
  unit: fc.constantFrom('"', '\\', '[', ']', '{', '}', ',', ':', ' ', 'a', 'é', '🎈', '\n'),
})
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, false),
    fc.integer(),
    anyText,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
  ),
}))
const anyIndent = fc.constantFrom('', ' ', '\t', '   ')

test('the slices are the items, however they are written', () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 8 }), anyIndent, (values, indent) => {
      const text = JSON.stringify({ events: values }, null, indent)
      const { items, frame } = sliceItems(text)
      // Not by JSON.parse, which takes one of such keys for another now and then.
      const parsed = items.map((item) => parseStrictJson(Buffer.from(item)))
      assert.equal(JSON.stringify(parsed), JSON.stringify(values))
      assert.deepEqual(JSON.parse(frame), { events: [] })
    }),
  )
})

test('the frame keeps whatever stands beside the array', () => {
  const anyRest = fc.dictionary(anyText, fc.oneof(fc.integer(), anyText, fc.boolean()))
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 4 }), anyRest, (values, rest) => {
      const { frame } = sliceItems(JSON.stringify({ ...rest, events: values }))
      assert.equal(frame, JSON.stringify({ ...rest, events: [] }))
    }),
  )
})

test('an item is sliced as it was written, with what parsing would forget', () => {
  const { items } = sliceItems('{"events":[{"a":1,"a":2}, 1.50 ,12345678901234567890]}')
  assert.deepEqual(items, ['{"a":1,"a":2}', ' 1.50 ', '12345678901234567890'])
})

test('of several arrays the first is sliced and the others stay in the frame', () => {
  const { items, frame } = sliceItems('{"x":[1,2],"events":[{"a":1,"a":2}]}')
  assert.deepEqual(items, ['1', '2'])
  assert.equal(frame, '{"x":[],"events":[{"a":1,"a":2}]}')
})

test('a text without an array inside an object has no items and is its own frame', () => {
  for (const text of ['{}', '{"events":{"x":[1]}}', '{"events":"[1,2]"}', '5', '"["']) {
    assert.deepEqual(sliceItems(text), { items: [], frame: text })
  }
})
