import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isDecodable, readableAddress } from './address-text.ts'

test('a part of a path that is no percent-encoded UTF-8 is taken as it stands', () => {
  assert.equal(readableAddress('/v1/exports/%ED%A0%80'), '/v1/exports/%25ED%25A0%2580')
  assert.equal(readableAddress('/a/%zz/%C3%A9?x=%zz'), '/a/%25zz/%C3%A9?x=%zz')
  assert.equal(readableAddress('/a/50%#%'), '/a/50%25#%')
})

test('an address that can be decoded stays as it is', () => {
  for (const url of ['/', '/v1/events?category=%ff', '/a/%C3%A9/%2F', '*', '//%25zz']) {
    assert.equal(readableAddress(url), url)
  }
})

test('whatever the address, its path can be decoded afterwards and has as many parts', () => {
  const piece = fc.oneof(fc.constantFrom('%', '%ff', '%C3', '%41', '/', '?', '#'), fc.string())
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const pathOf = (url: string) => url.split(/[?#]/, 1)[0] ?? ''
      const sent = pieces.join('')
      const path = pathOf(readableAddress(sent))
      assert(isDecodable(path))
      assert.equal(path.split('/').length, pathOf(sent).split('/').length)
    }),
  )
})
