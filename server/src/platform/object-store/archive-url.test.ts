import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArchiveUrl } from './archive-url.ts'

test('parses a folder or a bucket with a prefix from its URL', () => {
  assert.deepEqual(parseArchiveUrl('file:///var/annals%20archive/'), {
    kind: 'folder',
    path: '/var/annals archive/',
  })
  assert.deepEqual(parseArchiveUrl('s3://archive'), { kind: 's3', bucket: 'archive', prefix: '' })
  assert.deepEqual(parseArchiveUrl('s3://archive/a/b/'), {
    kind: 's3',
    bucket: 'archive',
    prefix: 'a/b',
  })
})

const REFUSED = [
  'hidden',
  'http://hidden/',
  's3://id:hidden@archive/x',
  's3://archive/x?key=hidden',
  's3://archive/x#hidden',
  's3:///hidden',
  's3://archive/hidden%zz',
  's3://archive/hidden%00',
  'file://hidden/archive',
  'file:hidden',
  'file:///hidden?a=1',
  'file:///hidden%2fb',
  'file:///hidden%00',
]

for (const text of REFUSED) {
  test(`rejects "${text}" as an archive, without repeating it`, () => {
    assert.throws(
      () => parseArchiveUrl(text),
      ({ message }: Error) => /^(must|has) /.test(message) && !message.includes('hidden'),
    )
  })
}
