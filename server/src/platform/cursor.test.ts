import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { CursorCodec } from './cursor.ts'
import { Secret } from './secret/secret.ts'

const secretKey = () => new Secret(randomBytes(32))
const cursors = new CursorCodec(secretKey())
const anyPosition = fc.string({ minLength: 1, unit: 'grapheme' })
const anyBinding = fc.string({ unit: 'grapheme' })

test('a cursor returns its position to the query it was created for', () => {
  fc.assert(
    fc.property(anyPosition, anyBinding, (position, binding) => {
      const cursor = cursors.encode(position, binding)
      assert.match(cursor, /^[\w-]+$/, 'is safe in a URL')
      assert.equal(cursors.decode(cursor, binding), position)
    }),
  )
})

test('a cursor is invalid for any other query', () => {
  fc.assert(
    fc.property(anyPosition, anyBinding, anyBinding, (position, binding, other) => {
      fc.pre(binding !== other)
      assert.equal(cursors.decode(cursors.encode(position, binding), other), null)
    }),
  )
})

test('a request with a cursor of another list is refused, and one without a cursor starts the list', () => {
  const cursor = cursors.encode('position', 'events')
  assert.equal(cursors.read(cursor, 'events'), 'position')
  assert.equal(cursors.read(undefined, 'events'), null)
  assert.throws(() => cursors.read(cursor, 'exports'), { code: 'invalid_cursor' })
})

test('text cannot move from the position into the binding', () => {
  const bytes = Buffer.from(cursors.encode('position', 'bind'), 'base64url')
  const mac = bytes.subarray(0, bytes.length - 'position'.length)
  const forged = Buffer.concat([mac, Buffer.from('ace')]).toString('base64url')
  assert.equal(cursors.decode(forged, 'bindpl'), null)
})

test('changing any byte of a cursor makes it invalid', () => {
  const bytes = Buffer.from(cursors.encode('1772366400000/019cab2f', 'events'), 'base64url')
  for (let index = 0; index < bytes.length; index += 1) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const altered = Buffer.from(bytes)
      altered[index] = (altered[index] ?? 0) ^ flip
      assert.equal(cursors.decode(altered.toString('base64url'), 'events'), null)
    }
  }
})

test('rejects a truncated, extended or re-encoded cursor', () => {
  const cursor = cursors.encode('1772366400000/019cab2f', 'events')
  for (let length = 0; length < cursor.length; length += 1) {
    assert.equal(cursors.decode(cursor.slice(0, length), 'events'), null)
  }
  const spellings = [`${cursor}=`, `${cursor}A`, ` ${cursor}`, `${cursor}\n`, `${cursor}!`]
  for (const text of spellings) assert.equal(cursors.decode(text, 'events'), null, text)
})

test('rejects text that was not signed', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String()), (text) => {
      assert.equal(cursors.decode(text, 'events'), null)
    }),
  )
})

test('nodes with the same secret key share cursors, and other keys reject them', () => {
  const shared = secretKey()
  const cursor = new CursorCodec(shared).encode('position', 'events')
  assert.equal(new CursorCodec(shared).decode(cursor, 'events'), 'position')
  assert.equal(cursors.decode(cursor, 'events'), null)
})
