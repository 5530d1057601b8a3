import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInTree, parseTilePath } from './tile-path.ts'

test('parses the paths of the specification', () => {
  const tile = { level: 0, isEntries: false, width: 256 }
  assert.deepEqual(parseTilePath('0/x001/x234/067'), { ...tile, number: 1_234_067 })
  assert.deepEqual(parseTilePath('0/000'), { ...tile, number: 0 })
  assert.deepEqual(parseTilePath('2/005.p/17'), { ...tile, level: 2, number: 5, width: 17 })
  assert.deepEqual(parseTilePath('entries/x001/000.p/1'), {
    level: 0,
    isEntries: true,
    number: 1_000,
    width: 1,
  })
})

for (const path of [
  '',
  '0',
  '0/',
  '0/1',
  '0/0001',
  '0/x001',
  '0/001/002',
  '0/x000/001',
  '00/000',
  '64/000',
  '-1/000',
  '0/000.p/0',
  '0/000.p/256',
  '0/000.p/01',
  '0/000.p/',
  'Entries/000',
  '0/000/',
  `0/${'x999/'.repeat(20)}999`,
]) {
  test(`refuses the path ${path}`, () => assert.equal(parseTilePath(path), null))
}

test('a tree of 70,000 leaves has the tiles of the specification’s example', () => {
  const has = (path: string) => {
    const request = parseTilePath(path)
    assert(request)
    return isInTree(request, 70_000)
  }
  for (const path of ['0/272', '0/273.p/112', '0/000.p/5', '1/000', '1/001.p/17', '2/000.p/1']) {
    assert(has(path), path)
  }
  for (const path of ['0/273', '0/273.p/113', '1/001', '1/001.p/18', '2/000', '3/000.p/1']) {
    assert(!has(path), path)
  }
})
