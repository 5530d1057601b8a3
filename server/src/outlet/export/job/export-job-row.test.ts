import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FILTER } from '../../../ledger/filter/event-filter.ts'
import { newId } from '../../../platform/id.ts'
import { EXPORT_EVIDENCE } from './export-job.ts'
import { readFilters, readRanges, writeFilters } from './export-job-row.ts'

const workspaceId = newId<'workspace'>()

test('filters are read back from the table as written', () => {
  const full = {
    fromMs: 1_767_225_600_000,
    toMs: 1_767_312_000_000,
    receivedFromMs: 1_767_225_600_000,
    receivedToMs: 1_767_312_000_000,
    category: 'c',
    action: '',
    projectId: newId<'project'>(),
    actorId: 'a',
    actorEmail: 'a@example.com',
    resourceType: 't',
    resourceId: 'r',
    traceId: '0'.repeat(32),
    actorRole: 'admin',
    metadata: [
      { path: 'ip', values: ['192.0.2.1', '192.0.2.2'] },
      { path: 'request.id', values: null },
    ],
    text: 'x',
    textIn: 'all' as const,
    anyOf: [
      { field: 'action' as const, value: 'login' },
      { field: 'action' as const, value: 'logout' },
    ],
    excluded: [
      { field: 'action' as const, value: 'login' },
      { field: 'projectId' as const, value: newId<'project'>() },
      { field: 'actorId' as const, value: '' },
      { field: 'actorId' as const, value: 'a:b' },
    ],
  }
  for (const filter of [full, NO_FILTER]) {
    for (const filterWorkspaceId of [workspaceId, null]) {
      for (const evidence of EXPORT_EVIDENCE) {
        const snapshotAtMs = evidence === 'COMPLETE' ? 1_767_312_000_000 : null
        const stored = { filter, filterWorkspaceId, evidence, snapshotAtMs }
        assert.deepEqual(readFilters(JSON.parse(writeFilters(stored))), stored)
      }
    }
  }
})

const LATER_NAMES = ['receivedFromMs', 'receivedToMs', 'anyOf', 'actorRole', 'metadata']

test('filters without a list of values can be read by the previous version', () => {
  const filters = { filter: NO_FILTER, filterWorkspaceId: null, snapshotAtMs: null }
  const none = { ...filters, evidence: 'NONE' } as const
  const stored = JSON.parse(writeFilters(none))
  for (const name of [...LATER_NAMES, 'textIn', 'evidence', 'snapshotAtMs'])
    assert(!(name in stored), name)
})

test('a missing filter is read as no filter', () => {
  assert.deepEqual(readFilters({}), {
    filter: NO_FILTER,
    filterWorkspaceId: null,
    evidence: 'NONE',
    snapshotAtMs: null,
  })
})

test('rejects stored filters that Annals never writes', () => {
  const broken = [
    null,
    [],
    'x',
    { fromMs: '1' },
    { toMs: 1.5 },
    { category: 1 },
    { projectId: 'p' },
    { workspaceId: 'w' },
    { colour: 'red' },
    { evidence: 'SOME' },
    { evidence: 1 },
    { anyOf: [{ field: 'action' }] },
    { excluded: {} },
    { excluded: [{ field: 'colour', value: 'red' }] },
    { excluded: [{ field: 'action' }] },
    { excluded: [{ field: 'projectId', value: 'p' }] },
    { excluded: Array.from({ length: 21 }, (_, nth) => ({ field: 'action', value: `${nth}` })) },
  ]
  for (const json of broken) assert.throws(() => readFilters(json), JSON.stringify(json))
})

test('ranges are read back as written, and malformed ones are rejected', () => {
  const range = { workspaceId, fromSeq: 1, toSeq: 9 }
  assert.deepEqual(readRanges([range, range]), [range, range])
  assert.deepEqual(readRanges([]), [])
  for (const toSeq of [0, 9]) {
    const empty = { workspaceId, fromSeq: toSeq + 1, toSeq }
    assert.deepEqual(readRanges([empty]), [empty])
  }
  const broken = [
    null,
    {},
    [null],
    [{ ...range, workspaceId: 'w' }],
    [{ ...range, fromSeq: 0 }],
    [{ ...range, fromSeq: '1' }],
    [{ ...range, toSeq: 1.5 }],
    [{ ...range, fromSeq: 11 }],
    [{ ...range, toSeq: -1 }],
    [{ ...range, toSeq: '9' }],
  ]
  for (const json of broken) assert.throws(() => readRanges(json), JSON.stringify(json))
})
