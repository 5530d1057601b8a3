import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { eventually } from '../harness/timing/eventually.ts'
import { exportRows, storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { runVerifier, temporaryFiles } from '../harness/proof/verifier.ts'

const annals = await startTestApp({
  env: { ANNALS_RATE_LIMITS: 'off', ANNALS_CHECKPOINT_SECONDS: '1' },
})
after(() => annals[Symbol.asyncDispose]())
const write = temporaryFiles()
const EVENTS = Array.from({ length: 70 }, (_, nth) => ({
  category: 'auth',
  action: `action ${nth}`,
  metadata: { nth, text: 'é "quoted"' },
}))

test('the verifier accepts the checkpoints and proofs of a real service', async () => {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  const base = `/v1/workspaces/${workspace.id}`
  const plain = { key, headers: { accept: 'text/plain' } }
  const checkpointOf = (size: number) =>
    eventually(async () => {
      const { text } = await annals.call('GET', `${base}/checkpoint`, plain)
      assert.equal(text.split('\n')[1], String(size), text)
      return text
    })
  const empty = write('empty.txt', await checkpointOf(0))
  await storeEvents(annals, key, EVENTS.slice(0, 37))
  const older = write('older.txt', await checkpointOf(37))
  await storeEvents(annals, key, EVENTS.slice(37))
  const newer = write('newer.txt', await checkpointOf(70))
  const asJson = { key, headers: { accept: 'application/json' } }
  const { json } = await annals.call('GET', `${base}/checkpoint`, asJson)
  const trusted = ['--vkey', json.vkey]
  const requireProven = (...args: string[]) => {
    const { code, out, err } = runVerifier([...args, ...trusted])
    assert.equal(code, 0, out + err)
  }
  requireProven('checkpoint', empty)
  requireProven('checkpoint', newer)
  requireProven('checkpoint', write('checkpoint.json', json))
  for (const [from, to, files] of [
    [37, 70, [older, newer]],
    [0, 70, [empty, newer]],
    [37, 37, [older, older]],
  ] as const) {
    const path = `${base}/consistency?from=${from}&to=${to}`
    const { json: proof } = await annals.call('GET', path, { key })
    requireProven('consistency', ...files, '--proof', write('consistency.json', proof))
  }
  const rows = await exportRows(annals, key)
  for (const row of [rows[0], rows[36], rows[69]]) {
    const path = `/v1/events/${row.id}/proof`
    const { text } = await annals.call('GET', path, { key })
    requireProven('proof', write('proof.json', text))
    const { text: tlogProof } = await annals.call('GET', path, plain)
    const file = write('event.tlog-proof', tlogProof)
    requireProven('proof', file, '--event', write('row.json', row))
  }
})
