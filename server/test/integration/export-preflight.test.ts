import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { download, type ExportRequest, makeExport, storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/** The relative error of the estimate, compared with the actual file. */
async function errorOf(key: string, options: ExportRequest) {
  const body = { source: 'HOT', ...options }
  const { status, json, text } = await annals.call('POST', '/v1/exports/preflight', { key, body })
  assert.equal(status, 200, text)
  const made = await annals.call('POST', '/v1/exports', { key, body })
  const file = await download(annals, key, made.json.jobId)
  assert.equal(json.rows, file.trailers['x-row-count'])
  return Math.abs(Number(json.estimatedBytes) - file.body.length) / file.body.length
}

const event = (index: number, metadataBytes: number) => ({
  category: index % 3 === 0 ? 'third' : 'other',
  action: `number ${index}`,
  metadata: { text: 'x'.repeat(metadataBytes) },
})
const COUNT = 2_000

/** The size of the metadata of an event, by its position in the export from 0 to 1. */
const SHAPES: Record<string, (fraction: number) => number> = {
  'rows that grow from the first to the last': (fraction) => Math.round(fraction * 4_000),
  'small rows first and large ones last': (fraction) => (fraction < 0.73 ? 10 : 3_000),
  'large rows first and small ones last': (fraction) => (fraction < 0.27 ? 3_000 : 10),
  'a bulge of large rows in the middle': (fraction) =>
    Math.abs(fraction - 0.5) < 0.09 ? 6_000 : 10,
}

for (const [shape, bytesAt] of Object.entries(SHAPES)) {
  test(`the estimated size is within 15 percent with ${shape}`, async () => {
    const { workspaceKey: key } = await annals.createCompany()
    const events = Array.from({ length: COUNT }, (_, index) => event(index, bytesAt(index / COUNT)))
    await storeEvents(annals, key, events)
    for (const format of ['JSONL', 'CSV']) {
      for (const rest of [{}, { filters: { category: 'third' } }, { limit: COUNT / 2 }]) {
        const error = await errorOf(key, { format, ...rest })
        assert(error < 0.15, `${format} ${JSON.stringify(rest)}: ${error}`)
      }
    }
    const filters = { category: 'third' }
    const error = await errorOf(key, { format: 'JSONL', filters, evidence: 'COMPLETE' })
    assert(error < 0.15, `with stubs: ${error}`)
  })
}

test('the estimated size counts every workspace, not only the first', async () => {
  const { companyKey: key, workspaces } = await annals.createCompany({ workspaces: ['One', 'Two'] })
  for (const [index, { workspaceKey }] of workspaces.entries()) {
    const events = Array.from({ length: 300 }, (_, number) => event(number, index * 3_000))
    await storeEvents(annals, workspaceKey, events)
  }
  assert((await errorOf(key, { format: 'JSONL' })) < 0.15)
})

test('a small export is estimated exactly, and an empty CSV has its header', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  await storeEvents(
    annals,
    key,
    Array.from({ length: 90 }, (_, index) => event(index, index * 50)),
  )
  for (const format of ['JSONL', 'CSV']) {
    assert.equal(await errorOf(key, { format }), 0)
    assert.equal(await errorOf(key, { format, filters: { category: 'third' } }), 0)
  }
  const none = { source: 'HOT', format: 'CSV', filters: { category: 'none' } }
  const { json } = await annals.call('POST', '/v1/exports/preflight', { key, body: none })
  const { body } = await download(annals, key, await makeExport(annals, key, none))
  assert.equal(json.estimatedBytes, String(body.length))
})
