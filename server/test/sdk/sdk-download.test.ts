import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { Annals, AnnalsNetworkError, type ExportInput } from '../../../sdk/src/index.ts'
import { downloadExport } from '../../../sdk/src/node/download-export.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { eventually } from '../harness/timing/eventually.ts'

const service = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => service[Symbol.asyncDispose]())
const folder = await mkdtempDisposable(join(tmpdir(), 'annals-download-'))
after(() => folder[Symbol.asyncDispose]())

const { workspaceKey: apiKey } = await service.createCompany()
const sleep = async () => {}
const annals = new Annals({ apiKey, baseUrl: service.url, sleep })
await annals.events.batch(
  Array.from({ length: 300 }, (_, nth) => ({
    category: nth % 3 === 0 ? 'billing' : 'auth',
    action: `line\nbreak "${nth}"`,
    metadata: { text: 'x'.repeat(500) },
  })),
)

async function newJob(options: Partial<ExportInput> = {}): Promise<string> {
  const { jobId } = await annals.exports.create({ source: 'HOT', format: 'JSONL', ...options })
  return jobId
}

let files = 0
const newPath = () => join(folder.path, `events-${(files += 1)}`)
const leftovers = () => readdirSync(folder.path).filter((name) => name.endsWith('.part'))

/** A proxy that damages the first downloads. `cut` breaks them off, `shorten` ends them properly. */
async function damagingProxy(damages: ('cut' | 'shorten' | 'drop trailers' | 'long error')[]) {
  const server: Server = createServer((request, response) => {
    const headers = { authorization: request.headers.authorization ?? '' }
    void (async () => {
      const upstream = await fetch(`${service.url}${request.url}`, {
        headers,
        method: request.method ?? 'GET',
      })
      const body = Buffer.from(await upstream.arrayBuffer())
      const isFile = upstream.ok && request.url?.endsWith('/download')
      const damage = isFile ? damages.shift() : undefined
      const type = upstream.headers.get('content-type') ?? ''
      response.writeHead(damage === 'long error' ? 500 : upstream.status, { 'content-type': type })
      if (damage === 'long error') {
        response.end(Buffer.alloc(104_857_600))
        await once(response, 'close')
        wasReadToEnd = response.writableFinished
      } else if (damage === 'cut') {
        response.write(body.subarray(0, 1_000), () => response.destroy())
      } else {
        response.end(damage === 'shorten' ? body.subarray(0, body.indexOf('\n') + 1) : body)
      }
    })()
  })
  let wasReadToEnd: boolean | null = null
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  return {
    annals: new Annals({ apiKey, baseUrl: `http://127.0.0.1:${address.port}`, sleep }),
    wasReadToEnd: () => wasReadToEnd,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

for (const options of [
  { format: 'JSONL' },
  { format: 'CSV' },
  { format: 'JSONL', filters: { category: 'billing' }, evidence: 'COMPLETE' },
] as const) {
  test(`a download is the file that the job describes: ${JSON.stringify(options)}`, async () => {
    const path = newPath()
    const progress: number[] = []
    const jobId = await newJob(options)
    const downloaded = await downloadExport(annals, jobId, path, {
      onProgress: ({ bytes }) => progress.push(bytes),
    })
    const file = readFileSync(path)
    const job = await annals.exports.get(jobId)
    assert.deepEqual(downloaded, {
      jobId,
      path,
      rows: Number(job.rowsExported),
      bytes: Number(job.bytes),
      sha256: job.sha256,
    })
    assert.equal(downloaded.rows, 'filters' in options ? 100 : 300)
    assert.equal(createHash('sha256').update(file).digest('hex'), job.sha256)
    assert.equal(progress.at(-1), file.length)
    assert.deepEqual(leftovers(), [])
  })
}

test('a download that breaks off or ends early starts again', async () => {
  await using proxy = await damagingProxy(['cut', 'shorten', 'drop trailers'])
  const path = newPath()
  const jobId = await newJob()
  const { rows } = await downloadExport(proxy.annals, jobId, path)
  assert.equal(rows, 300)
  assert.equal(readFileSync(path).length, Number((await annals.exports.get(jobId)).bytes))
  assert.deepEqual(leftovers(), [])
})

test('a file that stays incomplete is an error, and leaves an earlier file as it was', async () => {
  await using proxy = await damagingProxy(['shorten', 'cut'])
  const path = newPath()
  writeFileSync(path, 'earlier')
  const download = downloadExport(proxy.annals, await newJob(), path, { retriesMax: 1 })
  await assert.rejects(download, (error: unknown) => {
    assert(error instanceof AnnalsNetworkError)
    return error.code === 'incomplete_download'
  })
  assert.equal(readFileSync(path, 'utf8'), 'earlier')
  assert.deepEqual(leftovers(), [])
})

test('running a finished download again keeps a complete file and replaces a damaged one', async () => {
  const path = newPath()
  const jobId = await newJob()
  const first = await downloadExport(annals, jobId, path)
  assert.deepEqual(await downloadExport(annals, jobId, path), first)
  const complete = readFileSync(path)
  writeFileSync(path, complete.subarray(1))
  const refused = downloadExport(annals, jobId, path, { rerun: false })
  await assert.rejects(refused, { code: 'export_not_downloadable', status: 409 })
  const again = await downloadExport(annals, jobId, path)
  assert.notEqual(again.jobId, jobId)
  assert.deepEqual({ ...again, jobId }, first)
  assert(readFileSync(path).equals(complete))
})

test('an error of any size is read only up to a limit', async () => {
  await using proxy = await damagingProxy(['long error'])
  const download = downloadExport(proxy.annals, await newJob(), newPath())
  await assert.rejects(download, { code: 'http_500', status: 500 })
  await eventually(() => assert.equal(proxy.wasReadToEnd(), false))
})

test('a signal ends a download and removes what it wrote', async () => {
  const path = newPath()
  const controller = new AbortController()
  const download = downloadExport(annals, await newJob(), path, {
    signal: controller.signal,
    onProgress: () => controller.abort(new Error('stopped')),
  })
  await assert.rejects(download, /stopped/)
  assert.deepEqual(leftovers(), [])
})

test('a stream has the bytes of the file, for runtimes without a disk', async () => {
  const jobId = await newJob()
  const stream = await annals.exports.stream(jobId)
  const bytes = Buffer.from(await new Response(stream).arrayBuffer())
  const { sha256 } = await annals.exports.get(jobId)
  assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256)
})
