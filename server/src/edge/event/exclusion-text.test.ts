import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exclusionText, parseExclusion, readExclusions } from './exclusion-text.ts'

const PROJECT = '01a1dea1-b98e-774d-9e55-6ad98e1602dd'

test('the first colon ends the field, and the value is kept verbatim', () => {
  for (const [text, field, value] of [
    ['category:billing', 'category', 'billing'],
    ['action:a:b:', 'action', 'a:b:'],
    ['actorId:', 'actorId', ''],
    ['resourceId: x\n:y ', 'resourceId', ' x\n:y '],
    [`projectId:${PROJECT}`, 'projectId', PROJECT],
  ]) {
    assert.deepEqual(parseExclusion(text ?? ''), { field, value })
  }
})

test('treats different spellings of a project id as the same project', () => {
  const texts = [`projectId:${PROJECT.toUpperCase()}`, `projectId:${PROJECT}`]
  assert.deepEqual(readExclusions(texts), [{ field: 'projectId', value: PROJECT }])
})

test('ignores text that is not an exclusion', () => {
  const texts = [
    '',
    ':',
    'category',
    'Category:x',
    ' category:x',
    'traceId:x',
    'text:x',
    'projectId:x',
  ]
  for (const text of [...texts, 'toString:x', 'fromMs:1'])
    assert.equal(parseExclusion(text), null, text)
})

test('returns each exclusion once, in a fixed order', () => {
  const given = ['actorId:b', 'category:z', 'actorId:a', 'category:z', 'category:a']
  const ordered = ['category:a', 'category:z', 'actorId:a', 'actorId:b']
  assert.deepEqual(readExclusions(given)?.map(exclusionText), ordered)
  assert.deepEqual(readExclusions(ordered)?.map(exclusionText), ordered)
  assert.equal(readExclusions([]), null)
})
