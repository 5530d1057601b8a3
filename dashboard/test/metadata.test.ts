import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patchSearch, readExplorerSearch } from '../src/query/explorer-search.ts'
import { viewPatch, viewQueryOf } from '../src/pages/explorer/view/view-query.ts'
import { bodyFilters, withoutChip } from '../src/query/filter-bodies.ts'
import { chipsOf, clearPatch, filtersOf, removePatch } from '../src/query/filters.ts'
import {
  mayAddMetadata,
  metadataText,
  queryFilters,
  readMetadata,
  readTyped,
} from '../src/query/metadata.ts'
import { windowOf } from '../src/query/time-window.ts'

const name = (id: string) => id

test('a path can contain equals signs, dots and percent signs', () => {
  for (const path of ['ip', 'a.b', 'a=b', '%3D', 'ä ü']) {
    for (const value of ['x', '', 'a=b', null]) {
      assert.deepEqual(readMetadata(metadataText({ path, value })), { path, value })
    }
  }
  assert.equal(readMetadata(''), null)
  assert.equal(readMetadata('%'), null)
})

test('a filter typed into the search field has a key and a value', () => {
  assert.equal(readTyped('metadata.ip:192.0.2.1'), 'ip=192.0.2.1')
  assert.equal(readTyped(' metadata.a.b: x: y '), 'a.b=x: y')
  assert.equal(readTyped('metadata.a=b:*'), 'a%3Db')
  assert.equal(readTyped('metadata.ip:'), null)
  assert.equal(readTyped(`metadata.ip:${'x'.repeat(1_025)}`), null)
  for (const text of ['metadata.updated', 'metadata', 'metadata.:x', 'x metadata.ip:1', 'ip:1']) {
    assert.equal(readTyped(text), undefined)
  }
})

test('a filter beyond the limits of the service is not added', () => {
  const paths = Array.from({ length: 10 }, (_, nth) => `p${nth}=x`)
  assert(mayAddMetadata(paths, 'p0=y'))
  assert(!mayAddMetadata(paths, 'p10=y'))
  assert(mayAddMetadata(undefined, 'p'))
})

test('metadata filters are added and removed one by one, and become chips, a query and a body', () => {
  let search = patchSearch({ text: 'x' }, { addMetadata: 'ip=192.0.2.1' })
  search = patchSearch(search, { addMetadata: 'ip=192.0.2.2' })
  search = patchSearch(search, { addMetadata: 'request', actorRole: 'admin' })
  const filters = filtersOf(search, null)
  assert.deepEqual(
    chipsOf(filters, name).map(({ label, value }) => `${label} ${value}`),
    [
      'actor role admin',
      'metadata.ip 192.0.2.1',
      'metadata.ip 192.0.2.2',
      'metadata.request exists',
    ],
  )
  assert.deepEqual(queryFilters(filters), {
    text: 'x',
    actorRole: 'admin',
    'metadata.ip': ['192.0.2.1', '192.0.2.2'],
    hasMetadata: ['request'],
  })
  assert.deepEqual(bodyFilters(filters), {
    text: 'x',
    actorRole: 'admin',
    metadata: { ip: ['192.0.2.1', '192.0.2.2'] },
    hasMetadata: ['request'],
  })
  const [role, first] = chipsOf(filters, name)
  assert(role && first)
  const left = patchSearch(patchSearch(search, removePatch(first)), removePatch(role))
  assert.deepEqual(left, { text: 'x', metadata: ['ip=192.0.2.2', 'request'] })
  assert.deepEqual(withoutChip(filters, first).metadata, ['ip=192.0.2.2', 'request'])
  assert.deepEqual(patchSearch(search, clearPatch()), {})
})

test('a saved view restores the metadata filters of its query', () => {
  const search = readExplorerSearch({ metadata: ['ip=192.0.2.1', 'a.b'], actorRole: 'admin' })
  const timeWindow = windowOf({ range: '24h' }, Date.UTC(2026, 0))
  const query = viewQueryOf(search, filtersOf(search, null), timeWindow)
  const restored = patchSearch({}, viewPatch({ id: 'v', workspaceId: null, query }))
  assert.deepEqual([restored.metadata, restored.actorRole], [['ip=192.0.2.1', 'a.b'], 'admin'])
})

test('the URL has no more metadata filters than the service accepts', () => {
  const paths = Array.from({ length: 12 }, (_, nth) => `p${nth}=x`)
  assert.equal(readExplorerSearch({ metadata: paths }).metadata?.length, 10)
  const values = Array.from({ length: 25 }, (_, nth) => `p=${nth}`)
  assert.equal(readExplorerSearch({ metadata: values }).metadata?.length, 20)
  assert.deepEqual(readExplorerSearch({ metadata: `${'p'.repeat(257)}=x` }), {})
})
