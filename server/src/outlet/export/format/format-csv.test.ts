import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { anyText } from '../../../../test/harness/event/any-event.ts'
import { guardedCell } from '../../../../test/harness/export/csv-guard.ts'
import type { SealedEvent } from '../../../ledger/event.ts'
import { newId } from '../../../platform/id.ts'
import { CSV_HEADER, csvRow } from './format-csv.ts'
import { jsonlRow } from './format-jsonl.ts'

const EVENT: SealedEvent = {
  id: newId(),
  seq: 1,
  companyId: newId(),
  workspaceId: newId(),
  projectId: null,
  timestampMs: 0,
  receivedAtMs: 1,
  category: 'c',
  action: 'a',
  traceId: null,
  actor: null,
  metadata: null,
  resource: null,
  prevHash: '0'.repeat(64),
  hash: 'f'.repeat(64),
  sealed: '{}',
  salts: '{}',
}
const COLUMNS = CSV_HEADER.trimEnd().split(',')

/** An independent reader that follows RFC 4180, character by character. */
function readRow(line: string): string[] {
  const cells: string[] = []
  let cell = ''
  let isQuoted = false
  const end = line.length - 2
  assert.equal(line.slice(end), '\r\n')
  for (let at = 0; at < end; at++) {
    const character = line.charAt(at)
    if (isQuoted && character === '"' && line.charAt(at + 1) === '"') {
      cell += '"'
      at += 1
    } else if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) {
      cells.push(cell)
      cell = ''
    } else {
      assert(isQuoted || !'\r\n'.includes(character), 'line breaks are quoted')
      cell += character
    }
  }
  assert(!isQuoted)
  return [...cells, cell]
}

function cellsOf(event: SealedEvent): Record<string, string> {
  const cells = readRow(csvRow(event))
  assert.equal(cells.length, COLUMNS.length)
  return Object.fromEntries(COLUMNS.map((name, index) => [name, cells[index] ?? '']))
}

test('round-trips any text, with an apostrophe before anything that could be a formula', () => {
  fc.assert(
    fc.property(anyText, anyText, anyText, (category, actorId, value) => {
      const metadata = JSON.stringify({ value })
      const actor = JSON.stringify({ id: actorId })
      const cells = cellsOf({ ...EVENT, category, actor, metadata })
      for (const [name, text] of Object.entries({ category, actorId, metadata })) {
        assert.equal(cells[name], guardedCell(text))
      }
    }),
  )
})

test('no cell starts like a formula, even after a semicolon or a tab', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const actor = JSON.stringify({ id: text, email: text, role: text })
      const resource = JSON.stringify({ type: text, id: text })
      const cells = cellsOf({ ...EVENT, category: text, action: text, actor, resource })
      for (const cell of Object.values(cells)) {
        assert.doesNotMatch(
          cell,
          /^[\t\r\n]|(?:^|[;\t])[ \u00a0\u200b\u3000\ufeff]*[=+\-@＝＋－＠]/,
        )
      }
    }),
  )
})

test('adds an apostrophe before every character that could start a formula in a new cell', () => {
  const cells = {
    '=1': "'=1",
    '＝1': "'＝1",
    ' =1': " '=1",
    '\u200b\ufeff+1': "\u200b\ufeff'+1",
    "'=1": "''=1",
    '\t=1': "'\t'=1",
    '\t1': "'\t1",
    'a;=1': "a;'=1",
    'a; \u00a0@x;-y': "a; \u00a0'@x;'-y",
    'a\t=1': "a\t'=1",
    'a;\t＋1': "a;\t'＋1",
    'a;x=1': 'a;x=1',
    'a=1;b': 'a=1;b',
    '1-1': '1-1',
  }
  for (const [category, cell] of Object.entries(cells)) {
    assert.equal(cellsOf({ ...EVENT, category })['category'], cell)
    assert.equal(JSON.parse(jsonlRow({ ...EVENT, category })).category, category, 'JSONL is raw')
  }
})

test('takes linear time for long runs of separators or spaces', () => {
  for (const text of ['\t', ';', ' ', '\u3000'].map((character) => character.repeat(256_000))) {
    const before = process.threadCpuUsage()
    cellsOf({ ...EVENT, category: `${text}x` })
    assert(process.threadCpuUsage(before).user < 1_000_000)
  }
})

test('writes missing values as empty cells', () => {
  const cells = cellsOf(EVENT)
  for (const name of ['projectId', 'actorId', 'actorEmail', 'actorRole', 'resourceType']) {
    assert.equal(cells[name], '')
  }
  assert.equal(cells['timestamp'], '1970-01-01T00:00:00.000Z')
  assert.equal(cells['seq'], '1')
})
