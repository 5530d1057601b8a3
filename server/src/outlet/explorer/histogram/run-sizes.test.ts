import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId, type WorkspaceId } from '../../../platform/id.ts'
import { RunSizes } from './run-sizes.ts'

/** The sizes of ten runs of events that cost this much each. */
function sizesAt(msPerEvent: number): number[] {
  const sizes = new RunSizes()
  const workspaceId: WorkspaceId = newId()
  return Array.from({ length: 10 }, () => {
    const events = sizes.of(workspaceId)
    sizes.noteRun(workspaceId, { events, tookMs: events * msPerEvent })
    return events
  })
}

test('runs of ordinary events grow to 50,000 events', () => {
  assert.deepEqual(sizesAt(0.015).slice(0, 3), [5_000, 20_000, 50_000])
})

test('runs of expensive events take two seconds', () => {
  for (const msPerEvent of [0.5, 2.5, 10])
    assert.equal(sizesAt(msPerEvent).at(-1), 2_000 / msPerEvent)
})

test('a run that failed is repeated with an eighth of its events, and at least 100', () => {
  const sizes = new RunSizes()
  const workspaceId: WorkspaceId = newId()
  const failed = Array.from({ length: 4 }, () => {
    sizes.noteFailure(workspaceId)
    return sizes.of(workspaceId)
  })
  assert.deepEqual(failed, [625, 100, 100, 100])
  assert.equal(sizes.of(newId()), 5_000, 'of another workspace')
})

test('a run of a few events changes nothing', () => {
  const sizes = new RunSizes()
  const workspaceId: WorkspaceId = newId()
  sizes.noteRun(workspaceId, { events: 3, tookMs: 900 })
  assert.equal(sizes.of(workspaceId), 5_000)
})
