import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { OPTIONS, parseConfig } from './config.ts'
import { OperatorError } from './errors.ts'
import { COSIGNATURE, noteKeyText } from './platform/tlog/signed-note.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')
const WITNESS_KEY = noteKeyText({
  name: 'witness.example',
  type: COSIGNATURE,
  publicKey: Buffer.alloc(32, 9),
})

/** The error message that the operator sees, one problem per line, without the heading. */
function problemsOf(env: Record<string, string>): string[] {
  try {
    parseConfig(env)
  } catch (error) {
    assert(error instanceof OperatorError)
    const [heading, ...problems] = error.message.split('\n').map((line) => line.trim())
    assert.equal(heading, 'The configuration is invalid:')
    return problems
  }
  return []
}

test('an empty environment is valid and has the documented defaults', () => {
  const config = parseConfig({})
  assert.equal(config.host, '127.0.0.1')
  assert.equal(config.port, 8080)
  assert.equal(config.dataDir, resolve('./data'))
  assert.equal(config.databaseUrl, null)
  assert.deepEqual(config.trustedProxies, [])
  assert.equal(config.webhookDestinations, 'public')
  assert.equal(config.rateLimits, 'on')
  assert.equal(config.metricsPort, null)
  assert(Object.isFrozen(config))
})

test('every variable of the operator’s interface is accepted', () => {
  const env = {
    ANNALS_HOST: '::1',
    ANNALS_PORT: '0',
    ANNALS_API_PROCESSES: '64',
    ANNALS_DATA_DIR: '/var/lib/annals',
    ANNALS_DATABASE_URL: 'postgresql://u:p@db:5432/annals?sslmode=require',
    ANNALS_DATABASE_REPLICA_URL: 'postgresql://u:p@replica:5432/annals',
    ANNALS_SECRET_KEY: KEY,
    ANNALS_ARCHIVE_URL: 's3://bucket/prefix',
    ANNALS_S3_ENDPOINT: 'http://127.0.0.1:9000',
    AWS_REGION: 'eu-central-1',
    ANNALS_TRUSTED_PROXIES: '10.0.0.0/8, ::1/128,192.0.2.1',
    ANNALS_PUBLIC_URL: 'https://annals.example.com',
    ANNALS_WEBHOOK_DESTINATIONS: 'any',
    ANNALS_WEBHOOK_PORTS: '8443, 9443',
    ANNALS_RATE_LIMITS: 'off',
    ANNALS_SMTP_URL: 'smtp://user:pass@mail:25',
    ANNALS_LOG_LEVEL: 'debug',
    ANNALS_CHECKPOINT_SECONDS: '10',
    ANNALS_VERIFY_HOURS: '0',
    ANNALS_SIGNING_KEY: KEY,
    ANNALS_SIGNING_KEY_PREVIOUS: OTHER_KEY,
    ANNALS_WITNESSES: `https://witness.example ${WITNESS_KEY}`,
    ANNALS_METRICS_PORT: '9100',
    ANNALS_OIDC_ISSUER: 'https://id.example.com/realms/staff',
    ANNALS_OIDC_CLIENT_ID: 'annals',
    ANNALS_OIDC_CLIENT_SECRET: 'secret',
    ANNALS_OIDC_NAME: 'Example ID',
    ANNALS_OIDC_SCOPES: 'openid email groups',
    ANNALS_OIDC_GROUPS_CLAIM: 'roles',
    ANNALS_BOOTSTRAP_PASSWORD: 'correct horse battery',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector.example/traces',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://collector.example/metrics',
    OTEL_EXPORTER_OTLP_HEADERS: 'api-key=secret',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'api-key=secret',
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'api-key=secret',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_SERVICE_NAME: 'annals',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.01',
    OTEL_BSP_SCHEDULE_DELAY: '1000',
    OTEL_METRIC_EXPORT_INTERVAL: '15000',
    OTEL_SDK_DISABLED: 'false',
  }
  const known = Object.values(OPTIONS).map(({ variable }) => variable)
  assert.deepEqual(
    known.toSorted(),
    [...Object.keys(env), 'ANNALS_SECRET_KEY_FILE', 'ANNALS_SIGNING_KEY_FILE'].toSorted(),
    'this test names every variable there is',
  )
  const config = parseConfig(env)
  assert.equal(config.port, 0)
  assert.deepEqual(config.webhookPorts, [8443, 9443])
  assert.deepEqual(config.trustedProxies, ['10.0.0.0/8', '::1/128', '192.0.2.1/32'])
  assert.equal(config.secretKey?.reveal().toString('base64'), KEY)
})

test('accepts a secret key from a file with a trailing newline', () => {
  const folder = mkdtempSync(join(tmpdir(), 'annals-config-'))
  try {
    const path = join(folder, 'key')
    writeFileSync(path, `${KEY}\n`)
    const config = parseConfig({ ANNALS_SECRET_KEY_FILE: path })
    assert.equal(config.secretKeyFile?.reveal().toString('base64'), KEY)
    const both = problemsOf({ ANNALS_SECRET_KEY_FILE: path, ANNALS_SECRET_KEY: KEY })
    assert.deepEqual(both, [
      'ANNALS_SECRET_KEY and ANNALS_SECRET_KEY_FILE are both set; set only one of them',
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('refuses invalid witnesses, and any witness if the service signs nothing', () => {
  const witness = `http://127.0.0.1:8090 ${WITNESS_KEY}`
  assert.equal(parseConfig({ ANNALS_WITNESSES: witness }).witnesses.length, 1)
  assert.deepEqual(
    problemsOf({ ANNALS_WITNESSES: `${witness}, https://b.example ${WITNESS_KEY}` }),
    ['ANNALS_WITNESSES must not contain duplicate witness names'],
  )
  const many = Array.from({ length: 11 }, () => witness).join()
  assert.deepEqual(problemsOf({ ANNALS_WITNESSES: many }), [
    'ANNALS_WITNESSES must contain at most 10',
  ])
  const env = { ANNALS_DATABASE_URL: 'postgresql://u:p@db/annals', ANNALS_SECRET_KEY: KEY }
  assert.deepEqual(problemsOf({ ...env, ANNALS_WITNESSES: witness }), [
    'ANNALS_WITNESSES requires ANNALS_ARCHIVE_URL with ANNALS_DATABASE_URL, because nothing is signed without an archive',
  ])
})

test('requires a separate port for metrics', () => {
  assert.deepEqual(problemsOf({ ANNALS_PORT: '8080', ANNALS_METRICS_PORT: '8080' }), [
    'ANNALS_METRICS_PORT is the same as ANNALS_PORT; choose another port',
  ])
  assert.doesNotThrow(() => parseConfig({ ANNALS_PORT: '0', ANNALS_METRICS_PORT: '0' }))
})

test('reports all problems at once, each with its variable', () => {
  const problems = problemsOf({
    ANNALS_HOST: '',
    ANNALS_PORT: '99999',
    ANNALS_API_PROCESSES: '65',
    ANNALS_DATABASE_URL: 'mysql://u:hunter2@db/annals',
    ANNALS_SECRET_KEY: 'short',
    ANNALS_SECRET_KEY_FILE: '/nowhere/key',
    ANNALS_ARCHIVE_URL: 'ftp://bucket',
    ANNALS_TRUSTED_PROXIES: '10.0.0.0/8,everyone',
    ANNALS_WEBHOOK_DESTINATIONS: 'some',
    ANNALS_WEBHOOK_PORTS: '443,0',
    ANNALS_RATE_LIMITS: 'no',
    ANNALS_LOG_LEVEL: 'loud',
    ANNALS_METRICS_PORT: '0x10',
    ANNALS_COLOUR: 'blue',
  })
  assert.deepEqual(problems.map((problem) => problem.replace(/ .*/, '')).toSorted(), [
    'ANNALS_API_PROCESSES',
    'ANNALS_ARCHIVE_URL',
    'ANNALS_COLOUR',
    'ANNALS_DATABASE_URL',
    'ANNALS_HOST',
    'ANNALS_LOG_LEVEL',
    'ANNALS_METRICS_PORT',
    'ANNALS_PORT',
    'ANNALS_RATE_LIMITS',
    'ANNALS_SECRET_KEY',
    'ANNALS_SECRET_KEY_FILE',
    'ANNALS_TRUSTED_PROXIES',
    'ANNALS_WEBHOOK_DESTINATIONS',
    'ANNALS_WEBHOOK_PORTS',
  ])
  assert(!problems.join().includes('hunter2'), 'a password is not repeated')
})

for (const port of ['', ' 80', '+80', '-1', '1e3', '0x50', '65536', '80.0', 'http']) {
  test(`rejects "${port}" as a port`, () => {
    const [problem] = problemsOf({ ANNALS_PORT: port })
    assert.equal(problem, `ANNALS_PORT must be an integer from 0 to 65535, got "${port}"`)
  })
}

for (const proxy of ['10.1', '012.0.0.1', '0x7f.0.0.1', '10.0.0.0/33', '2130706433']) {
  test(`rejects "${proxy}" as a proxy, because it can be read as more than one address`, () => {
    assert.equal(problemsOf({ ANNALS_TRUSTED_PROXIES: proxy }).length, 1)
  })
}

test('rejects an unknown variable and suggests the nearest known name', () => {
  assert.deepEqual(
    problemsOf({ ANNALS_PROT: '1', ANNALS_PORTS: '1', ANNALS_ZEBRA_CROSSING: '1' }),
    [
      'ANNALS_PROT is not an Annals variable (did you mean ANNALS_PORT?)',
      'ANNALS_PORTS is not an Annals variable (did you mean ANNALS_PORT?)',
      'ANNALS_ZEBRA_CROSSING is not an Annals variable',
    ],
  )
})

for (const service of ['', 'API_', 'POSTGRES_', 'METRICS_', 'METRICS_V2_']) {
  test(`ignores the variables that Kubernetes injects for the service ANNALS_${service}`, () => {
    const port = `ANNALS_${service}PORT`
    const config = parseConfig({
      [`ANNALS_${service}SERVICE_HOST`]: '10.3.0.1',
      [`ANNALS_${service}SERVICE_PORT`]: '8080',
      [`ANNALS_${service}SERVICE_PORT_HTTP_ALT`]: '8080',
      [port]: 'tcp://10.3.0.1:8080',
      [`${port}_8080_TCP`]: 'tcp://10.3.0.1:8080',
      [`${port}_8080_TCP_PROTO`]: 'tcp',
      [`${port}_8080_TCP_PORT`]: '8080',
      [`${port}_8080_TCP_ADDR`]: '10.3.0.1',
      [`${port}_53_UDP`]: 'udp://10.3.0.1:53',
      [`${port}_9_SCTP_ADDR`]: '10.3.0.1',
      HOME: '/root',
    })
    assert.deepEqual([config.port, config.metricsPort], [8080, null])
  })
}

test('ignores the variables of the commands that are clients of the API', () => {
  const variables = {
    ANNALS_API_URL: 'https://annals.example',
    ANNALS_API_KEY: 'annals_…',
    ANNALS_WEBHOOK_SECRET: 'whsec_…',
  }
  assert.deepEqual(parseConfig(variables), parseConfig({}))
})

test('treats a port variable with the value of a Kubernetes service as not set', () => {
  for (const protocol of ['tcp', 'udp', 'sctp']) {
    const value = `${protocol}://10.3.0.1:9100`
    const config = parseConfig({ ANNALS_PORT: value, ANNALS_METRICS_PORT: value })
    assert.deepEqual([config.port, config.metricsPort], [8080, null])
  }
})

test('rejects a typo that only resembles a Kubernetes variable', () => {
  const typos = {
    ANNALS_API_SERVICE_HOSTS: 'a',
    ANNALS_METRIC_PORT: '9100',
    ANNALS_METRICS_PORT_9100: '9100',
    ANNALS_API_PORT_TCP: '8080',
    ANNALS_HOST_PORT_X: 'tcp://10.3.0.1:8080',
    ANNALS_SERVICEHOST: 'a',
  }
  assert.equal(problemsOf(typos).length, Object.keys(typos).length)
  assert.equal(problemsOf({ ANNALS_PORT: 'http://10.3.0.1:8080' }).length, 1)
  assert.equal(problemsOf({ ANNALS_HOST: '127.0.0.1', ANNALS_PUBLIC_URL: 'tcp://a' }).length, 1)
})

test('requires a secret key with a database URL, because all nodes must share it', () => {
  const [problem, ...others] = problemsOf({ ANNALS_DATABASE_URL: 'postgres://u:p@db/annals' })
  assert.match(problem ?? '', /^ANNALS_SECRET_KEY or ANNALS_SECRET_KEY_FILE is required/)
  assert.deepEqual(others, [])
})

test('requires a database URL with a replica, because the embedded engine has none', () => {
  assert.deepEqual(problemsOf({ ANNALS_DATABASE_REPLICA_URL: 'postgres://u:p@db/annals' }), [
    'ANNALS_DATABASE_REPLICA_URL requires ANNALS_DATABASE_URL',
  ])
  const target = 'postgres://u:hunter2@db/annals?target_session_attrs=read-write'
  const [problem] = problemsOf({ ANNALS_DATABASE_REPLICA_URL: target })
  assert.match(problem ?? '', /^ANNALS_DATABASE_REPLICA_URL must not require a writable server/)
})

test('rejects a secret key that is not exactly 32 bytes of base64, without repeating it', () => {
  const bad = [KEY.slice(0, -1), `${KEY}=`, ` ${KEY}`, Buffer.alloc(31).toString('base64'), 'ÿ', '']
  for (const key of bad) {
    const problems = problemsOf({ ANNALS_SECRET_KEY: key })
    assert.deepEqual(problems, [
      'ANNALS_SECRET_KEY must be 32 bytes in base64 (to create one, run: openssl rand -base64 32)',
    ])
  }
})

test('prints secrets as [secret], however the configuration is printed', () => {
  const config = parseConfig({
    ANNALS_DATABASE_URL: 'postgres://u:hunter2@db/annals',
    ANNALS_SECRET_KEY: KEY,
    ANNALS_SMTP_URL: 'smtp://user:hunter2@mail',
  })
  const printed = [
    JSON.stringify(config),
    inspect(config, { depth: 10, showHidden: true }),
    [config.databaseUrl, config.secretKey, config.smtpUrl].map(String).join(' '),
  ].join('\n')
  assert(!printed.includes('hunter2') && !printed.includes(KEY))
  assert(!printed.includes(Buffer.from(KEY, 'base64').toString('hex')))
  assert.equal(printed.split('[secret]').length, 10)
})

const OIDC = {
  ANNALS_OIDC_ISSUER: 'https://id.example.com',
  ANNALS_OIDC_CLIENT_ID: 'annals',
  ANNALS_OIDC_CLIENT_SECRET: 'hush-hush',
  ANNALS_PUBLIC_URL: 'https://annals.example.com',
}

test('sign-in with OpenID Connect needs all of its settings or none', () => {
  assert.deepEqual(problemsOf(OIDC), [])
  for (const left of Object.keys(OIDC)) {
    const rest = Object.entries(OIDC).filter(([name]) => name !== left)
    const [problem, ...others] = problemsOf(Object.fromEntries(rest))
    assert.match(problem ?? '', new RegExp(`^${left} is required with ANNALS_OIDC_`))
    assert.deepEqual(others, [])
  }
  assert.equal(inspect(parseConfig(OIDC)).includes('hush-hush'), false)
})

test('an issuer must use https, except on this machine', () => {
  const problems = (issuer: string) => problemsOf({ ...OIDC, ANNALS_OIDC_ISSUER: issuer })
  for (const issuer of ['http://127.0.0.1:9000', 'http://localhost:1/realm', 'http://[::1]:1']) {
    assert.deepEqual(problems(issuer), [], issuer)
  }
  for (const issuer of [
    'http://id.example.com',
    'http://127.0.0.1.example.com',
    'https://id.example.com/?a=1',
    'https://user@id.example.com',
    'id.example.com',
  ]) {
    assert.match(problems(issuer)[0] ?? '', /^ANNALS_OIDC_ISSUER must be a URL/, issuer)
  }
})

test('sign-in always requests the email address', () => {
  const [problem] = problemsOf({ ...OIDC, ANNALS_OIDC_SCOPES: 'openid profile' })
  assert.equal(problem, 'ANNALS_OIDC_SCOPES must contain openid and email')
})
