import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FILTER } from '../../ledger/filter/event-filter.ts'
import { newId } from '../../platform/id.ts'
import type { ExportJob } from './job/export-job.ts'
import { contentDispositionOf } from './file-name.ts'

const NOW_MS = Date.UTC(2026, 10, 17, 21, 5, 9)
const MARCH = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 3, 1) }

const rangeOf = () => ({ workspaceId: newId<'workspace'>(NOW_MS), fromSeq: 1, toSeq: 9 })

function jobOf({ times = {}, ...given }: Partial<ExportJob> & { times?: object }): ExportJob {
  return {
    id: newId<'export-job'>(NOW_MS),
    companyId: newId<'company'>(NOW_MS),
    workspaceId: null,
    createdBy: null,
    name: null,
    cadence: null,
    source: 'HOT',
    format: 'CSV',
    filter: { ...NO_FILTER, ...times },
    filterWorkspaceId: null,
    evidence: 'NONE',
    snapshotAtMs: null,
    ranges: [rangeOf()],
    spans: null,
    rowLimit: 1,
    status: 'PENDING',
    rowsExported: 0,
    isTruncated: null,
    sha256: null,
    bytes: null,
    errorCode: null,
    failureSummary: null,
    lastAttempt: null,
    storedParts: null,
    rerunOf: null,
    createdAt: new Date(NOW_MS),
    startedAt: null,
    finishedAt: null,
    expiresAt: new Date(NOW_MS),
    ...given,
  }
}

const FORMAT = /^attachment; filename="([a-z0-9.TZ-]+)"; filename\*=UTF-8''([A-Za-z0-9.%-]+)$/

function namesOf(job: ExportJob, company: string, workspace: string | null): [string, string] {
  const header = contentDispositionOf(job, { company, workspace })
  const [, ascii = '', full = ''] = FORMAT.exec(header) ?? assert.fail(header)
  return [ascii, decodeURIComponent(full)]
}

test('a file name says the company, the workspace and the period', () => {
  const march = jobOf({ times: MARCH })
  const name = 'acme-production-2026-03-01--2026-04-01.csv'
  assert.deepEqual(namesOf(march, 'Acme', 'Production'), [name, name])
  const [named] = namesOf({ ...march, name: 'Sign-ins, EU' }, 'Acme', 'Production')
  assert.equal(named, 'acme-production-sign-ins-eu-2026-03-01--2026-04-01.csv')
  const [several] = namesOf({ ...march, ranges: [rangeOf(), rangeOf()] }, 'Acme', null)
  assert.equal(several, 'acme-2-workspaces-2026-03-01--2026-04-01.csv')
})

test('a period without an end lasts until the job was created', () => {
  const fromMs = Date.UTC(2026, 2, 1, 12, 30)
  const job = jobOf({ times: { fromMs }, format: 'JSONL' })
  assert.equal(namesOf(job, 'Acme', 'P')[0], 'acme-p-2026-03-01T1230Z--2026-11-17T2105Z.jsonl')
  assert.equal(namesOf(jobOf({}), 'Acme', 'P')[0], 'acme-p-until-2026-11-17T2105Z.csv')
})

test('a file name keeps all letters for clients that can read them', () => {
  const job = jobOf({ times: MARCH })
  assert.deepEqual(namesOf(job, 'Łódź & Söhne', '本番'), [
    'odz-sohne-2026-03-01--2026-04-01.csv',
    'łódź-söhne-本番-2026-03-01--2026-04-01.csv',
  ])
  assert.equal(namesOf(job, '監査', '本番')[0], 'annals-2026-03-01--2026-04-01.csv')
})

test('no name can end the header, name a folder or exceed the limit of a file system', () => {
  const hostile = [
    'a"; filename="b.exe',
    'a\r\nset-cookie: b=c',
    '../../etc/passwd',
    '.hidden',
    '\u202Egpj.exe',
    'x'.repeat(500),
    '🦉'.repeat(100),
    '𠮷'.repeat(100),
    'é'.repeat(200),
    '-',
    '',
  ]
  for (const text of hostile) {
    const names = namesOf(jobOf({ times: MARCH, name: text }), text, text)
    for (const name of names) {
      assert.match(name, /^[\p{L}\p{N}][\p{L}\p{M}\p{N}-]*-2026-03-01--2026-04-01\.csv$/u)
      assert(Buffer.byteLength(name) <= 255, name)
    }
  }
})
