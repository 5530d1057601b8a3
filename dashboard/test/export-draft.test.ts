import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf, draftOf, missingIn, newDraft } from '../src/pages/exports/form/draft.ts'
import type { Export, ExportBody } from '../src/pages/exports/exports.ts'
import { progressAfter } from '../src/pages/exports/list/pace.ts'

const MONTH: ExportBody = {
  source: 'HOT_AND_ARCHIVED',
  format: 'CSV',
  filters: {
    range: 'previousMonth',
    workspaceId: '01a1dea1-b98e-774d-9e55-6ad98e1602dd',
    category: 'auth',
    text: 'ana',
    anyOf: ['resourceType:invoice', 'resourceType:user'],
    not: ['action:user.login', 'actorId:a:b'],
  },
  limit: 500,
  savedExplorerViewId: '01a1dea1-b99e-73ab-88c5-d9ba75138368',
}

test('opening and saving a template without changes leaves it the same', () => {
  assert.deepEqual(bodyOf(draftOf(MONTH)), MONTH)
})

test('the proof is kept for JSONL, and is not requested for CSV', () => {
  const proven = { source: 'HOT', format: 'JSONL', filters: {}, evidence: 'COMPLETE' } as const
  assert.deepEqual(bodyOf(draftOf(proven)), proven)
  const { evidence: _evidence, ...csv } = { ...proven, format: 'CSV' as const }
  assert.deepEqual(bodyOf({ ...draftOf(proven), format: 'CSV' }), csv)
  assert.deepEqual(bodyOf(draftOf({ ...proven, evidence: 'NONE' })).evidence, undefined)
})

test('custom ranges keep their milliseconds in the form', () => {
  const filters = { from: '2026-01-01T00:00:00.123Z', to: '2026-02-01T00:00:00.456Z' }
  assert.deepEqual(bodyOf(draftOf({ source: 'HOT', format: 'JSONL', filters })).filters, filters)
})

test('a filter without a value is not sent', () => {
  const draft = { ...newDraft(null), lines: [{ field: 'action' as const, value: '  ' }] }
  assert.deepEqual(bodyOf(draft), { source: 'HOT', format: 'JSONL', filters: {} })
})

test('archived events require a start and an end time', () => {
  const archived = { ...newDraft(null), source: 'ARCHIVED' as const }
  const from = '2026-01-01T00:00:00.000Z'
  assert.match(missingIn(archived) ?? '', /Choose a time range/)
  assert.match(missingIn({ ...archived, time: 'exact', from }) ?? '', /a start and an end time/)
  assert.equal(missingIn({ ...archived, time: '7d' }), null)
})

test('the download rate follows the rows between two polls', () => {
  const first = progressAfter({}, [running('1000')], 10_000)
  assert.equal(first.job?.rowsPerSecond, null)
  const second = progressAfter(first, [running('3000')], 12_000)
  assert.equal(second.job?.rowsPerSecond, 1_000)
  const still = progressAfter(second, [running('3000')], 14_000)
  assert.equal(still.job?.rowsPerSecond, 500)
  assert.equal(still.job?.movedAtMs, 12_000)
})

function running(rowsExported: string): Export {
  return { id: 'job', status: 'RUNNING', rowsExported } as Export // A rate depends on these fields only.
}
