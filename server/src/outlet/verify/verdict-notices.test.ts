import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import { verdictNotices } from './verdict-notices.ts'

const chain = { companyId: newId<'company'>(), workspaceId: newId<'workspace'>() }
const noticesFor = (status: 'HOLDS' | 'BROKEN' | 'FAILED' | 'CANCELED', run = 'run') =>
  verdictNotices(chain, { status, verdict: 'A sentence.', badSeq: 3 }, run)
const causesFor = (...given: Parameters<typeof noticesFor>) =>
  noticesFor(...given).map(({ kind, cause }) => `${kind} ${cause}`)

test('only a broken chain and a run that failed have a notice', () => {
  assert.deepEqual(noticesFor('HOLDS'), [])
  assert.deepEqual(noticesFor('CANCELED'), [])
  for (const status of ['BROKEN', 'FAILED'] as const) {
    const [notice, ...others] = noticesFor(status)
    assert.deepEqual([notice?.message, notice?.link, others], ['A sentence.', '/app/integrity', []])
  }
})

test('two runs that find the same broken event have one cause, and two that fail have two', () => {
  assert.deepEqual(causesFor('BROKEN', 'first'), causesFor('BROKEN', 'second'))
  assert.notDeepEqual(causesFor('FAILED', 'first'), causesFor('FAILED', 'second'))
})
