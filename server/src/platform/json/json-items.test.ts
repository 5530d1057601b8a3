import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { splitItems } from './json-items.ts'
import type { JsonSource } from './json-scanner.ts'
import { parseStrictJson } from './strict-json.ts'
import { runAtOnce } from '../scheduling/time-slice.ts'

/** Strings full of characters that a careless reader would mistake for structure. */
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

function split(text: string, itemsMax = 10) {
  const found = runAtOnce(splitItems(Buffer.from(text), { name: 'events', itemsMax }))
  return found && { items: found.items.map(textOf), frame: textOf(found.frame) }
}

function textOf({ bytes, start, end }: JsonSource): string {
  return bytes.toString('utf8', start, end)
}

test('finds the items, whatever their formatting', () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 8 }), anyIndent, (values, indent) => {
      const found = split(JSON.stringify({ events: values }, null, indent))
      // Not with JSON.parse, which occasionally confuses such keys.
      const parsed = found?.items.map((item) => parseStrictJson(Buffer.from(item)).value)
      assert.equal(JSON.stringify(parsed), JSON.stringify(values))
      assert.deepEqual(JSON.parse(found?.frame ?? ''), { events: [] })
    }),
  )
})

test('the frame keeps everything outside the array', () => {
  const anyRest = fc.dictionary(anyText, fc.oneof(fc.integer(), anyText, fc.boolean()))
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 4 }), anyRest, (values, rest) => {
      const found = split(JSON.stringify({ ...rest, events: values }))
      assert.equal(found?.frame, JSON.stringify({ ...rest, events: [] }))
    }),
  )
})

test('a text is valid JSON if and only if its frame and all of its items are', () => {
  const pieces = ['{', '}', '[', ']', ',', ':', '"', '\\', '"events":[', '{"events":[', '1', ' ']
  const almostJson = fc
    .array(fc.constantFrom(...pieces), { maxLength: 10 })
    .map((parts) => `{"events":[${parts.join('')}]}`)
  fc.assert(
    fc.property(almostJson, (text) => {
      const found = split(text, 100)
      assert(found)
      assert.equal([found.frame, ...found.items].every(isJson), isJson(text), text)
    }),
    { numRuns: rounds(1_000, 3_000) },
  )
})

/** Checks only the syntax. The strict parser can stop at a repeated key before it sees a syntax error. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('an item has its text as written, including what parsing would lose', () => {
  const found = split('{"events":[{"a":1,"a":2}, 1.50 ,12345678901234567890]}')
  assert.deepEqual(found?.items, ['{"a":1,"a":2}', '1.50', '12345678901234567890'])
})

test('splits only the named array of the outermost object', () => {
  assert.deepEqual(split('{"x":[1,2],"y":{"events":[3]},"events":[{"a":1,"a":2}]}'), {
    items: ['{"a":1,"a":2}'],
    frame: '{"x":[1,2],"y":{"events":[3]},"events":[]}',
  })
})

test('returns null if there are more items than the maximum', () => {
  assert.equal(split('{"events":[1,2,3]}', 3)?.items.length, 3)
  assert.equal(split('{"events":[1,2,3,4]}', 3), null)
  assert.equal(split('{"events":[1,2,3,4,', 3), null)
})

test('counts the items of an array that does not end', () => {
  const count = (text: string) =>
    runAtOnce(splitItems(Buffer.from(text), { name: 'events', itemsMax: 10 }))?.count
  assert.equal(count('{"events":[1,{"a":2},3]}'), 3)
  assert.equal(count('{"events":[1,{"a":2},3'), 3)
  assert.equal(count('{"events":[]}'), 0)
  assert.equal(count('{"other":[1,2,3'), 0)
})

test('text without such an array has no items and is its own frame', () => {
  for (const text of [
    '{}',
    '{"events":{"x":[1]}}',
    '{"events":"[1,2]"}',
    '["events",[1]]',
    '[["events"],[1]]',
    '{"events',
    '{"events"',
    '5',
    '"["',
  ]) {
    assert.deepEqual(split(text), { items: [], frame: text })
  }
})
