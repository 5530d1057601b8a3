import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Table } from '../../output/table.ts'
import { EVENT_TABLE } from './event-columns.ts'

const EVENT = {
  id: '01a1e58b-8718-770d-814d-f7fe9c3f1129',
  seq: 7,
  timestamp: '2026-11-19T10:00:00.000Z',
  receivedAt: '2026-11-19T10:00:00.000Z',
  companyId: '01a1e58b-8718-770d-814d-f7fe9c3f1130',
  workspaceId: '01a1e58b-8718-770d-814d-f7fe9c3f1131',
  projectId: null,
  category: 'billing',
  action: 'invoice.deleted',
  actor: null,
  resource: null,
  metadata: null,
  traceId: '0'.repeat(32),
  hash: '0'.repeat(64),
  prevHash: '0'.repeat(64),
}

test('a list of events has whole IDs on a terminal of any width', () => {
  for (let widthMax = 40; widthMax <= 200; widthMax += 1) {
    const text = new Table(EVENT_TABLE, { widthMax }).format([EVENT])
    assert(text.includes(EVENT.id), `${widthMax} columns:\n${text}`)
    assert(text.split('\n').every((line) => line.length <= widthMax + 9))
  }
  const text = new Table(EVENT_TABLE, { widthMax: 80 }).format([EVENT])
  assert.match(text, /TIME +ACTION +ID[^]*Z {2}invoice\.deleted +01a1/)
})
