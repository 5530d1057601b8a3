import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sendEvents } from '../../server/test/harness/dashboard/explorer.ts'
import {
  download,
  type ExportRequest,
  makeExport,
} from '../../server/test/harness/export/exports.ts'
import { startTestApp } from '../../server/test/harness/app/start-app.ts'
import { coreOf } from '../src/pages/explorer/event/verify-event.ts'
import { VERIFY_SCRIPT } from '../src/pages/integrity/verify-script.ts'

const annals = await startTestApp()
const folder = mkdtempSync(join(tmpdir(), 'annals-check-'))
after(async () => {
  rmSync(folder, { recursive: true })
  await annals[Symbol.asyncDispose]()
})
const FIVE_EVENTS = [1, 2, 3, 4, 5].map((nth) => ({
  category: 'c',
  action: `number.${nth}`,
  actor: { email: 'ana@example.com' },
}))
const lines = await exportLines()

async function exportLines(
  options: ExportRequest = {},
  events: readonly object[] = FIVE_EVENTS,
): Promise<string[]> {
  const { workspaceKey: key } = await annals.createCompany()
  await sendEvents(annals, key, events)
  const { text } = await download(annals, key, await makeExport(annals, key, options))
  return text.trim().split('\n')
}

function check(exported: readonly string[]) {
  const script = join(folder, 'check.mjs')
  const file = join(folder, 'export.jsonl')
  writeFileSync(script, VERIFY_SCRIPT)
  writeFileSync(file, exported.map((line) => `${line}\n`).join(''))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, file], {
    encoding: 'utf8',
  })
  return { status, said: stdout + stderr }
}

test('the verification script reports that a complete export has no missing events', () => {
  const { status, said } = check(lines)
  const { hash } = JSON.parse(lines[4] ?? '')
  assert.equal(said, `5 events verified, none missing; last: event 5, ${hash}\n`)
  assert.equal(status, 0)
})

test('the script reads metadata keys with escapes correctly, and finds a changed one', async () => {
  const keys = ['x\\', 'x"', '__proto__', 'a:[{,']
  const events = keys.map((key) => ({
    category: 'c',
    action: 'a',
    metadata: { a: [1, -0.5e-7, true, null, 'x\\"'], [key]: { n: {} } },
  }))
  const exported = await exportLines({}, events)
  const { status, said } = check(exported)
  assert.match(said, /^4 events verified, none missing/)
  assert.equal(status, 0)
  const changed = exported.map((line, nth) =>
    nth === 1 ? line.replace('"x\\"":', '"x\\\\":') : line,
  )
  assert.match(check(changed).said, /^event 2: metadata was changed/)
})

test('the script counts gaps in the sequence, including missing first events', () => {
  for (const [missing, gaps] of [
    [[2], '1 gap'],
    [[0], '1 gap'],
    [[0, 2], '2 gaps'],
    [[1, 2], '1 gap'],
  ] as const) {
    const kept = lines.filter((_, index) => !missing.some((nth) => nth === index))
    const { status, said } = check(kept)
    assert.match(said, new RegExp(`^${kept.length} events verified, ${gaps} in the sequence`))
    assert.match(said, /expected only in a filtered export/)
    assert.equal(status, 0)
  }
})

test('the script fails at an event whose fields or parts were changed', () => {
  for (const [before, later, why] of [
    ['"number.3"', '"number.9"', /^event 3 was changed/],
    ['ana@example.com', 'bob@example.com', /^event 3: actor was changed/],
    ['"salts":{', '"salts":{},"gone":{', /^event 3: actor was changed/],
  ] as const) {
    const { status, said } = check(
      lines.map((line, index) => (index === 2 ? line.replace(before, later) : line)),
    )
    assert.match(said, why)
    assert.equal(status, 1)
  }
})

test('the script fails at an event that does not follow the previous one', () => {
  const { status, said } = check(lines.map((line, index) => (index === 2 ? relinked(line) : line)))
  assert.match(said, /^event 3 does not follow/)
  assert.equal(status, 1)
})

/** Changes the previous hash of an event, and recomputes its own hash to match. */
function relinked(line: string): string {
  const event = { ...JSON.parse(line), prevHash: '0'.repeat(64) }
  const hash = createHash('sha256')
    .update(`\0${coreOf(event)}`)
    .digest('hex')
  return JSON.stringify({ ...event, hash })
}

test('the script verifies the chain of an export with stubs, and finds a changed stub', async () => {
  const filters = { action: 'number.2' }
  const complete = await exportLines({ filters, evidence: 'COMPLETE' })
  assert.equal(complete.filter((line) => line.startsWith('{"stub":true,')).length, 4)
  const { status, said } = check(complete)
  assert.match(said, /^5 events verified, none missing/)
  assert.equal(status, 0)
  const changed = complete.map((line) => line.replace('"number.4"', '"number.9"'))
  assert.match(check(changed).said, /^event 4 was changed/)
})
