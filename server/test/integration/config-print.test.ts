import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OPTIONS } from '../../src/config.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'

type Printed = { variable: string; value: string | null; source: string; file: string | null }

async function printed(env: Record<string, string>): Promise<Map<string, Printed>> {
  const { code, stdout, stderr } = await runCommandInHost(['config', 'print', '--json'], env)
  assert.equal(code, 0, stderr)
  const values: Printed[] = JSON.parse(stdout)
  return new Map(values.map((value) => [value.variable, value]))
}

const KEY = Buffer.alloc(32, 7).toString('base64')
const SECRETS = {
  ANNALS_DATABASE_URL:
    'postgres://annals:p%40ss-d@db-1.example:5432,db-2.example/annals?sslmode=require&password=p-query',
  ANNALS_DATABASE_REPLICA_URL: 'postgres://annals:p-replica@db-3.example/annals',
  ANNALS_SECRET_KEY: KEY,
  ANNALS_SIGNING_KEY: Buffer.alloc(32, 8).toString('base64'),
  ANNALS_SIGNING_KEY_PREVIOUS: Buffer.alloc(32, 9).toString('base64'),
  ANNALS_SMTP_URL: 'smtp://mailer:p-smtp@mail.example:587?from=annals@example.com',
  ANNALS_S3_ENDPOINT: 'https://user:p-s3@s3.example',
  ANNALS_OIDC_ISSUER: 'https://id.example',
  ANNALS_OIDC_CLIENT_ID: 'annals',
  ANNALS_OIDC_CLIENT_SECRET: 'p-client://a:b@c',
  ANNALS_PUBLIC_URL: 'https://audit.example',
  ANNALS_BOOTSTRAP_PASSWORD: 'p-owner',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otlp.example/p-path/otlp',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/v1/traces?token=p-token',
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://metrics.example/v1/metrics/p-tail',
}

test('prints every variable in the order of the documentation, with its default', async () => {
  const values = await printed({})
  assert.deepEqual(
    [...values.keys()],
    Object.values(OPTIONS).map(({ variable }) => variable),
  )
  const port = { variable: 'ANNALS_PORT', value: '8080', source: 'default', file: null }
  assert.deepEqual(values.get('ANNALS_PORT'), port)
  assert.equal(values.get('ANNALS_PUBLIC_URL')?.value, 'http://127.0.0.1:8080')
  assert.match(values.get('ANNALS_ARCHIVE_URL')?.value ?? '', /^file:\/\/\/.*\/archive$/)
})

test('never prints a password or a key, as text or as JSON', async () => {
  for (const options of [[], ['--json']]) {
    const { code, stdout, stderr } = await runCommandInHost(
      ['config', 'print', ...options],
      SECRETS,
    )
    assert.equal(code, 0, stderr)
    const hidden = [
      'p%40ss-d',
      'p-query',
      'p-replica',
      'p-smtp',
      'p-s3',
      'p-client',
      'p-owner',
      'AAAA',
      'p-path',
      'p-token',
      'p-tail',
    ]
    const keys = [SECRETS.ANNALS_SECRET_KEY, SECRETS.ANNALS_SIGNING_KEY].map((key) =>
      key.slice(0, 8),
    )
    for (const text of [...hidden, ...keys]) assert(!stdout.includes(text), text)
    for (const text of [
      'postgres://annals:[secret]@db-1.example:5432,db-2.example/annals?sslmode=require&password=[secret]',
      'postgres://annals:[secret]@db-3.example/annals',
      'smtp://mailer:[secret]@mail.example:587?from=annals@example.com',
      'https://user:[secret]@s3.example',
      'https://otlp.example/[secret]',
      'https://traces.example/v1/traces?token=[secret]',
      'https://metrics.example/[secret]',
    ]) {
      assert(stdout.includes(text), text)
    }
  }
})

test('says whether a value comes from the environment, a file or the default', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-config-'))
  const file = join(folder.path, 'key')
  await writeFile(file, KEY)
  const given = await printed({
    ANNALS_DATABASE_URL: 'postgres://db.example/annals',
    ANNALS_SECRET_KEY_FILE: file,
    ANNALS_LOG_LEVEL: 'warn',
  })
  const sourceOf = (name: string) => given.get(name)?.source
  assert.deepEqual(given.get('ANNALS_SECRET_KEY'), {
    variable: 'ANNALS_SECRET_KEY',
    value: '[secret]',
    source: 'file',
    file,
  })
  assert.equal(given.get('ANNALS_SECRET_KEY_FILE')?.value, file)
  assert.deepEqual(
    [sourceOf('ANNALS_LOG_LEVEL'), sourceOf('ANNALS_HOST')],
    ['environment', 'default'],
  )
  await writeFile(join(folder.path, 'secret.key'), KEY)
  const generated = (await printed({ ANNALS_DATA_DIR: folder.path })).get('ANNALS_SECRET_KEY')
  assert.equal(generated?.file, join(folder.path, 'secret.key'))
})

test('reports an invalid configuration like a start, and prints nothing', async () => {
  const { code, stdout, stderr } = await runCommandInHost(['config', 'print'], {
    ANNALS_PROT: '80',
  })
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /ANNALS_PROT is not an Annals variable \(did you mean ANNALS_PORT\?\)/)
})
