import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createRows,
  ledgerKey,
  lineOf,
  resealRow,
  rechainRows,
} from '../harness/proof/provable-export.ts'
import { runVerifier, temporaryFiles, type Verdict } from '../harness/proof/verifier.ts'

/**
 * JSON.parse of Node 24 reads the key of the second object as that of the first one, because the escaped text of
 * the second starts like the first without escapes.
 */
const SIBLINGS = [
  { a: 1, 'x\\': 'yes' },
  { a: 1, 'x"': 'no' },
] as const
const write = temporaryFiles()

/** The blank keeps the verifier from reading the line as one that Annals wrote. */
function runExport(line: string): Verdict {
  assert.match(line, /^\{ /)
  return runVerifier(['export', write('events.jsonl', line), '--vkey', ledgerKey().vkey])
}

const [row = assert.fail()] = createRows(1)
const [sealed = assert.fail()] = rechainRows([
  resealRow({ ...row, metadata: { list: [...SIBLINGS] } }),
])
const line = lineOf(sealed).replace('{', '{ ')

test('the verifier reads keys with escapes as they are', () => {
  assert.deepEqual(JSON.parse('{"a":1,"x\\\\":"yes"}'), SIBLINGS[0])
  const { code, out, err } = runExport(line)
  assert.equal(code, 0, out + err)
})

test('the verifier finds a key that was changed to another one with an escape', () => {
  for (const [from, to] of [
    ['"x\\\\":"yes"', '"x\\"":"yes"'],
    ['"x\\"":"no"', '"x\\\\":"no"'],
  ] as const) {
    const changed = line.replace(from, to)
    assert.notEqual(changed, line)
    const { code, out } = runExport(changed)
    assert.equal(code, 1, out)
    assert.match(out, /^TAMPERED: .+metadata does not match its commitment/)
  }
})
