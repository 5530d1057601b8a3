import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'node:test'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { call } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const RAISE_FAULTS = pathToFileURL(join(import.meta.dirname, '../harness/app/raise-faults.ts')).href

test('logs and counts an uncaught exception, and exits only if it comes from the writer', async () => {
  await using database = await cloneDatabase()
  await using service = new AnnalsProcess(['serve'], {
    ANNALS_DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_PORT: '0',
    ANNALS_METRICS_PORT: '0',
    NODE_OPTIONS: `--import=${RAISE_FAULTS}`,
  })
  const [, url = '', metricsUrl = ''] = await service.printed(
    /"event":"service.started".*"url":"([^"]+)","metricsUrl":"([^"]+)"/,
  )

  service.signal('SIGUSR2')
  const [exception] = await service.printed(/.*"event":"exception.uncaught".*\n/)
  assert.match(exception, /"origin":"uncaughtException"/)
  assert.match(exception, /a bug outside the writer: its cause/)
  service.signal('SIGUSR2')
  await service.printed(/"origin":"unhandledRejection".*a rejection outside the writer/)

  assert.equal((await call(`${url}/ready`, 'GET')).status, 200)
  const { text } = await call(`${metricsUrl}/metrics`, 'GET')
  assert.match(text, /^annals_exception_uncaught_total\{origin="uncaughtException"\} 1$/m)
  assert.match(text, /^annals_exception_uncaught_total\{origin="unhandledRejection"\} 1$/m)

  service.signal('SIGUSR2')
  const { code, stdout } = await service.exited
  assert.equal(code, 1)
  assert.match(stdout, /"level":60.*"event":"service.failed".*a bug in the writer/)
})
