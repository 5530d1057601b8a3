import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable, printableJson, widthOf } from '../../platform/terminal/printable.ts'
import { printLines } from './print.ts'
import { type Column, Table } from './table.ts'

type Row = { id: string; text: string; count: number | null }

const COLUMNS: Column<Row>[] = [
  { title: 'ID', value: ({ id }) => id, isWhole: true },
  { title: 'TEXT', value: ({ text }) => text },
  { title: 'COUNT', value: ({ count }) => count, isRight: true },
]
const plain = (rows: Row[]) => new Table(COLUMNS, { widthMax: null }).format(rows)

test('a table that is not printed to a terminal is aligned, whole and has no escape sequences', () => {
  const text = plain([
    { id: 'a', text: 'x'.repeat(100), count: 7 },
    { id: 'long-id', text: '', count: null },
  ])
  assert.equal(
    text,
    [
      `ID       TEXT${' '.repeat(96)}  COUNT`,
      `a        ${'x'.repeat(100)}      7`,
      `long-id  -${' '.repeat(99)}      -\n`,
    ].join('\n'),
  )
})

test('lines on a terminal fit its width, and whole columns are not cut', () => {
  const id = 'i'.repeat(20)
  const table = new Table(COLUMNS, { widthMax: 40 })
  const [header = '', line] = table.format([{ id, text: 'x'.repeat(60), count: 1 }]).split('\n')
  assert(header.startsWith('\u001B[2mID ') && header.endsWith('COUNT\u001B[22m'))
  assert.equal(line, `${id}  ${'x'.repeat(10)}…      1`)
  assert.equal(
    table.format([{ id: 'b', text: 'y', count: 2 }]),
    `b${' '.repeat(21)}y${' '.repeat(16)}2\n`,
  )
})

test('columns of a low rank are left out of a terminal that is too narrow', () => {
  const columns = COLUMNS.map((column) => ({
    ...column,
    ...(column.title === 'ID' && { rank: 1, widthMin: 20 }),
  }))
  const row = { id: 'i'.repeat(20), text: 'text', count: 1 }
  assert.doesNotMatch(new Table(columns, { widthMax: 39 }).format([row]), /ID|iii/)
  assert.match(new Table(columns, { widthMax: 40 }).format([row]), /ID[^]*iii/)
  assert.match(new Table(columns, { widthMax: null }).format([row]), /ID[^]*iii/)
})

test('the text of an event cannot drive the terminal or reorder a line', () => {
  const text = 'a\u001B[2Jb\r\nc\u009B1md\u007Fe\u202Ef\u2028g\u{D800}h\u0000'
  const escaped = String.raw`a\u001b[2Jb\u000d\u000ac\u009b1md\u007fe\u202ef\u2028g\ud800h\u0000`
  assert.equal(printable(text), escaped)
  assert.equal(plain([{ id: text, text, count: 1 }]).split('\n').length, 3)
  assert.doesNotMatch(printableJson({ [text]: text }), /[\p{Cc}\p{Cs}\u202E\u2028]/u)
  assert.deepEqual(JSON.parse(printableJson({ [text]: text })), { [text]: text })
})

test('a text in a line can neither hide that line nor add another one', (t) => {
  const written: unknown[] = []
  const { mock } = t.mock.method(process.stdout, 'write', (text: unknown) => written.push(text))
  printLines('BROKEN: \r\u001B[2K\nok: intact', 'FAILED')
  mock.restore()
  assert.deepEqual(written, ['BROKEN: \\u000d\\u001b[2K\\u000aok: intact\nFAILED\n'])
})

test('emoji and East Asian text stay aligned', () => {
  assert.equal(widthOf('日本'), 4)
  assert.equal(widthOf('🚀e\u0301'), 3)
  const lines = plain([
    { id: '日本', text: 'x', count: 1 },
    { id: 'abcd', text: 'x', count: 1 },
  ]).split('\n')
  assert.equal(lines[1], '日本  x         1')
  assert.equal(lines[2], 'abcd  x         1')
})
