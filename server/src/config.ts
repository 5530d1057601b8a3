import { resolve } from 'node:path'
import { integer, list, choice, text, textUpTo, url } from './config-value.ts'
import { OperatorError } from './errors.ts'
import { nearestName } from './nearest-name.ts'
import { parseArchiveUrl } from './platform/object-store/archive-url.ts'
import { LOG_LEVELS } from './platform/log-level.ts'
import {
  EXPORTERS,
  isExportOn,
  parseOtlpEndpoint,
  parseOtlpHeaders,
  parseOtlpProtocol,
  parseRatio,
  parseResourceAttributes,
  SAMPLERS,
} from './platform/otlp/otlp-settings.ts'
import { isLoopback } from './platform/outbound/loopback.ts'
import { parseDatabaseUrl, parseReplicaUrl } from './platform/pg/server-address.ts'
import { Secret } from './platform/secret/secret.ts'
import { parseSecretKey } from './platform/secret/secret-key.ts'
import { readSmallFile } from './platform/small-file.ts'
import { parseWitnesses } from './platform/tlog/witness-setting.ts'
import { parseCidr } from './tenancy/allowlist.ts'

type Option<T> = {
  variable: string
  /** The default, as an operator would write it, or null if there is none. */
  fallback: string | null
  meaning: string
  parse: (text: string) => T
}

/** Declares one variable. An unset variable without a fallback parses to null. */
function option<T>(
  variable: string,
  fallback: string,
  meaning: string,
  parse: (text: string) => T,
): Option<T>
function option<T>(
  variable: string,
  fallback: null,
  meaning: string,
  parse: (text: string) => T,
): Option<T | null>
function option<T>(
  variable: string,
  fallback: string | null,
  meaning: string,
  parse: (text: string) => T,
): Option<T | null> {
  return { variable, fallback, meaning, parse }
}

/** Every supported variable. docs/configuration.md is generated from this table. */
export const OPTIONS = {
  host: option('ANNALS_HOST', '127.0.0.1', 'Address to listen on.', text),
  port: option(
    'ANNALS_PORT',
    '8080',
    'Port to listen on; 0 chooses a free one.',
    integer(0, 65_535),
  ),
  apiProcesses: option(
    'ANNALS_API_PROCESSES',
    '1',
    'How many processes serve the API, from 1 to 64. From 2 on, background work gets a process of its own. Nodes with the role `worker` ignore it. See [operations.md](operations.md#several-processes).',
    integer(1, 64),
  ),
  dataDir: option(
    'ANNALS_DATA_DIR',
    './data',
    'Folder for the embedded engine, the archive and generated secrets.',
    (value) => resolve(text(value)),
  ),
  databaseUrl: option(
    'ANNALS_DATABASE_URL',
    null,
    'An existing PostgreSQL 15 or later. To use a cluster, list its servers, as in `postgres://user:password@a:5432,b:5432/annals`; connections go to the writable one. If not set, the embedded engine is used.',
    databaseUrl,
  ),
  replicaUrl: option(
    'ANNALS_DATABASE_REPLICA_URL',
    null,
    'A streaming standby of the database, which serves queries, exports and the explorer while it has all acknowledged events. Requires `ANNALS_DATABASE_URL`. See [operations.md](operations.md#read-replica).',
    replicaUrl,
  ),
  secretKey: option(
    'ANNALS_SECRET_KEY',
    null,
    '32 bytes in base64 that encrypt webhook secrets and sign cursors. Use the same key on every node. With the embedded engine, it is generated in the data folder; with `ANNALS_DATABASE_URL`, it is required.',
    secretKey,
  ),
  secretKeyFile: option(
    'ANNALS_SECRET_KEY_FILE',
    null,
    'File that contains the secret key, instead of `ANNALS_SECRET_KEY`.',
    (path) => secretKey(readSmallFile(path).trim()),
  ),
  signingKey: option(
    'ANNALS_SIGNING_KEY',
    null,
    '32 bytes in base64: the seed of the Ed25519 key that signs checkpoints. Use the same key on every node. If not set, the key is derived from the secret key.',
    secretKey,
  ),
  signingKeyFile: option(
    'ANNALS_SIGNING_KEY_FILE',
    null,
    'File that contains the signing key, instead of `ANNALS_SIGNING_KEY`.',
    (path) => secretKey(readSmallFile(path).trim()),
  ),
  signingKeyPrevious: option(
    'ANNALS_SIGNING_KEY_PREVIOUS',
    null,
    'The signing key that `ANNALS_SIGNING_KEY` replaced. Both keys sign for 30 days after the change.',
    secretKey,
  ),
  checkpointSeconds: option(
    'ANNALS_CHECKPOINT_SECONDS',
    '5',
    'How soon after an event a signed checkpoint should contain it. With slow storage, it takes longer.',
    integer(1, 3_600),
  ),
  verifyHours: option(
    'ANNALS_VERIFY_HOURS',
    '24',
    'How often each chain is verified, including its archived files. Members get a notice if a chain is broken or can’t be verified. 0: only when a member starts a verification.',
    integer(0, 8_760),
  ),
  witnesses: option(
    'ANNALS_WITNESSES',
    '',
    'Witnesses that cosign checkpoints, comma-separated. For each one, its URL, a space and its verifier key, such as `https://witness.example witness.example+1a2b3c4d+BA…`. At most 10. See [proof.md](proof.md#witnesses).',
    parseWitnesses,
  ),
  archiveUrl: option(
    'ANNALS_ARCHIVE_URL',
    null,
    'Location of archived segments: `file:///…` or `s3://bucket/prefix`. Use the same location on every node. With the embedded engine, the default is a folder in the data folder. With `ANNALS_DATABASE_URL`, nothing is archived unless you set it.',
    (value) => {
      parseArchiveUrl(value)
      return value
    },
  ),
  s3Endpoint: option(
    'ANNALS_S3_ENDPOINT',
    null,
    'URL of an S3-compatible server. Credentials come from the standard AWS variables.',
    (value) => url(value, ['http:', 'https:']),
  ),
  s3Region: option(
    'AWS_REGION',
    null,
    'Region of the bucket. If `ANNALS_S3_ENDPOINT` is set, the default is `us-east-1`. Credentials come from the other standard AWS variables.',
    text,
  ),
  trustedProxies: option(
    'ANNALS_TRUSTED_PROXIES',
    '',
    'Comma-separated CIDR ranges of proxies whose `X-Forwarded-For` header is trusted.',
    list(cidr),
  ),
  publicUrl: option(
    'ANNALS_PUBLIC_URL',
    null,
    'URL at which users reach the service, for links. The default is the address that the service listens on.',
    (value) => url(value, ['http:', 'https:']),
  ),
  webhookDestinations: option(
    'ANNALS_WEBHOOK_DESTINATIONS',
    'public',
    '`public` allows only https and public addresses. `any` also allows http and private addresses, for development.',
    choice(['public', 'any'] as const),
  ),
  webhookPorts: option(
    'ANNALS_WEBHOOK_PORTS',
    '',
    'Comma-separated ports that webhooks can use in addition to 443.',
    list(integer(1, 65_535)),
  ),
  rateLimits: option(
    'ANNALS_RATE_LIMITS',
    'on',
    '`off` disables all rate limits.',
    choice(['on', 'off'] as const),
  ),
  smtpUrl: option(
    'ANNALS_SMTP_URL',
    null,
    'Mail server for invitations, password resets and notices, as `smtp://user:password@host:587?from=annals@example.com`; `smtps:` uses TLS from the start. If not set, no mail is sent.',
    (value) => new Secret(url(value, ['smtp:', 'smtps:'])),
  ),
  oidcIssuer: option(
    'ANNALS_OIDC_ISSUER',
    null,
    'URL of the identity provider for sign-in with OpenID Connect, without `/.well-known/openid-configuration`. Requires `ANNALS_OIDC_CLIENT_ID`, `ANNALS_OIDC_CLIENT_SECRET` and `ANNALS_PUBLIC_URL`. Must use https, unless the provider runs on this machine. See [sign-in.md](sign-in.md).',
    issuerUrl,
  ),
  oidcClientId: option(
    'ANNALS_OIDC_CLIENT_ID',
    null,
    'The client ID that the identity provider gave to this service.',
    text,
  ),
  oidcClientSecret: option(
    'ANNALS_OIDC_CLIENT_SECRET',
    null,
    'The client secret that the identity provider gave to this service.',
    (value) => new Secret(text(value)),
  ),
  oidcName: option(
    'ANNALS_OIDC_NAME',
    'single sign-on',
    'Name of the identity provider on the sign-in page, as in “Sign in with Example ID”. At most 40 characters.',
    textUpTo(40),
  ),
  oidcScopes: option(
    'ANNALS_OIDC_SCOPES',
    'openid email',
    'Scopes to request at sign-in, separated by spaces. Some identity providers send groups only if you add a scope for them.',
    scopes,
  ),
  oidcGroupsClaim: option(
    'ANNALS_OIDC_GROUPS_CLAIM',
    'groups',
    'Name of the claim that contains the groups of a person. What a group grants is set with `annals company map-group`.',
    textUpTo(200),
  ),
  bootstrapPassword: option(
    'ANNALS_BOOTSTRAP_PASSWORD',
    null,
    "The owner's password for `annals bootstrap`. Use it instead of `--password`, which other users of the machine can see. Other commands ignore it.",
    (value) => new Secret(text(value)),
  ),
  logLevel: option('ANNALS_LOG_LEVEL', 'info', LOG_LEVELS.join(', ') + '.', choice(LOG_LEVELS)),
  metricsPort: option(
    'ANNALS_METRICS_PORT',
    null,
    'Port of `GET /metrics` on the same address. If not set, metrics are not served.',
    integer(0, 65_535),
  ),
  otlpEndpoint: option(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    null,
    'URL of an OpenTelemetry receiver, for traces and metrics: `/v1/traces` and `/v1/metrics` are added. Without an endpoint, the other `OTEL_` variables are ignored. See [operations.md](operations.md#opentelemetry).',
    parseOtlpEndpoint,
  ),
  otlpTracesEndpoint: option(
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    null,
    'Complete URL for traces, instead of the common endpoint.',
    parseOtlpEndpoint,
  ),
  otlpMetricsEndpoint: option(
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
    null,
    'Complete URL for metrics, instead of the common endpoint.',
    parseOtlpEndpoint,
  ),
  otlpHeaders: option(
    'OTEL_EXPORTER_OTLP_HEADERS',
    null,
    'Headers for the receiver, such as `authorization=Bearer%20…`. Secret.',
    parseOtlpHeaders,
  ),
  otlpTracesHeaders: option(
    'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
    null,
    'Headers for traces, instead of the common headers. Secret.',
    parseOtlpHeaders,
  ),
  otlpMetricsHeaders: option(
    'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
    null,
    'Headers for metrics, instead of the common headers. Secret.',
    parseOtlpHeaders,
  ),
  otlpProtocol: option(
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'http/json',
    'Only `http/json` is supported.',
    parseOtlpProtocol,
  ),
  otelTracesExporter: option(
    'OTEL_TRACES_EXPORTER',
    'otlp',
    '`none` exports no traces.',
    choice(EXPORTERS),
  ),
  otelMetricsExporter: option(
    'OTEL_METRICS_EXPORTER',
    'otlp',
    '`none` exports no metrics.',
    choice(EXPORTERS),
  ),
  otelServiceName: option(
    'OTEL_SERVICE_NAME',
    null,
    'The name of this service in traces and metrics. If not set: `service.name` of `OTEL_RESOURCE_ATTRIBUTES`, or `annals`.',
    text,
  ),
  otelResourceAttributes: option(
    'OTEL_RESOURCE_ATTRIBUTES',
    '',
    'Attributes of all traces and metrics, such as `deployment.environment.name=staging`.',
    parseResourceAttributes,
  ),
  otelSampler: option(
    'OTEL_TRACES_SAMPLER',
    'parentbased_always_on',
    SAMPLERS.join(', ') + '.',
    choice(SAMPLERS),
  ),
  otelSamplerRatio: option(
    'OTEL_TRACES_SAMPLER_ARG',
    '1',
    'The share of traces for the samplers by ratio, from 0 to 1.',
    parseRatio,
  ),
  otelSpanDelayMs: option(
    'OTEL_BSP_SCHEDULE_DELAY',
    '5000',
    'Milliseconds between two exports of spans.',
    integer(100, 3_600_000),
  ),
  otelMetricIntervalMs: option(
    'OTEL_METRIC_EXPORT_INTERVAL',
    '60000',
    'Milliseconds between two exports of metrics.',
    integer(1_000, 3_600_000),
  ),
  otelDisabled: option(
    'OTEL_SDK_DISABLED',
    'false',
    '`true` exports nothing.',
    (value) => value.toLowerCase() === 'true',
  ),
} as const

type Parsed<O> = O extends Option<infer T> ? T : never
export type Config = Readonly<{ [Name in keyof typeof OPTIONS]: Parsed<(typeof OPTIONS)[Name]> }>

/**
 * Kubernetes injects variables for every Service in the namespace. The first pattern matches those of a
 * Service named `annals`, the second those of `annals-postgres`, `annals-api` and the like.
 */
const INJECTED = [
  /^ANNALS_(SERVICE|PORT)_/,
  /^ANNALS_\w+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)$/,
]
const PORT_NAME = /^ANNALS_(\w+_)?PORT$/
const INJECTED_PORT = /^(tcp|udp|sctp):\/\//

/** Read by the commands that are clients of the API. A shell that has them set can also start a service. */
const CLIENT_VARIABLES: readonly string[] = [
  'ANNALS_API_KEY',
  'ANNALS_API_URL',
  'ANNALS_WEBHOOK_SECRET',
]

/** Pure except for reading the files of keys. Reports all problems at once. */
export function parseConfig(env: Record<string, string | undefined>): Config {
  const problems: string[] = []
  const given = givenVariables(env)
  const config = Object.fromEntries(
    Object.entries(OPTIONS).map(([name, { variable, fallback, parse }]) => {
      const raw = given.get(variable) ?? fallback
      given.delete(variable)
      if (raw === null) return [name, null]
      try {
        return [name, parse(raw)]
      } catch (error) {
        problems.push(`${variable} ${error instanceof Error ? error.message : String(error)}`)
        return [name, null]
      }
    }),
  )
  const names = Object.values(OPTIONS).map(({ variable }): string => variable)
  for (const name of given.keys()) {
    const nearest = nearestName(name, names)
    const suggestion = nearest === null ? '' : ` (did you mean ${nearest}?)`
    problems.push(`${name} is not an Annals variable${suggestion}`)
  }
  if (config.secretKey && config.secretKeyFile) {
    problems.push('ANNALS_SECRET_KEY and ANNALS_SECRET_KEY_FILE are both set; set only one of them')
  }
  if (config.signingKey && config.signingKeyFile) {
    problems.push(
      'ANNALS_SIGNING_KEY and ANNALS_SIGNING_KEY_FILE are both set; set only one of them',
    )
  }
  if (config.signingKeyPrevious && !config.signingKey && !config.signingKeyFile) {
    problems.push(
      'ANNALS_SIGNING_KEY_PREVIOUS requires ANNALS_SIGNING_KEY, the key that replaced it',
    )
  }
  if (env.ANNALS_WITNESSES && env.ANNALS_DATABASE_URL && !env.ANNALS_ARCHIVE_URL) {
    problems.push(
      'ANNALS_WITNESSES requires ANNALS_ARCHIVE_URL with ANNALS_DATABASE_URL, because nothing is signed without an archive',
    )
  }
  if (env.ANNALS_DATABASE_URL && !env.ANNALS_SECRET_KEY && !env.ANNALS_SECRET_KEY_FILE) {
    problems.push(
      'ANNALS_SECRET_KEY or ANNALS_SECRET_KEY_FILE is required with ANNALS_DATABASE_URL (to create one, run: openssl rand -base64 32)',
    )
  }
  if (env.ANNALS_DATABASE_REPLICA_URL && !env.ANNALS_DATABASE_URL) {
    problems.push('ANNALS_DATABASE_REPLICA_URL requires ANNALS_DATABASE_URL')
  }
  if (config.metricsPort && config.metricsPort === config.port) {
    problems.push('ANNALS_METRICS_PORT is the same as ANNALS_PORT; choose another port')
  }
  problems.push(...oidcProblems((name) => config[name] !== null))
  if (problems.length > 0) {
    throw new OperatorError(`The configuration is invalid:\n  ${problems.join('\n  ')}`)
  }
  return Object.freeze(config) as Config // fromEntries loses the types of the keys.
}

/** Those of other standards. OpenTelemetry's count only with an endpoint, and an empty one counts as not set. */
function sharedVariables(env: Record<string, string | undefined>): ReadonlySet<string> {
  const names = Object.values(OPTIONS).map(({ variable }): string => variable)
  const isOn = isExportOn(env)
  return new Set(
    names.filter((name) =>
      name.startsWith('OTEL_') ? isOn && env[name] !== '' : !name.startsWith('ANNALS_'),
    ),
  )
}

/** The variables of the environment that are meant for Annals, including unknown ones. */
export function givenVariables(env: Record<string, string | undefined>): Map<string, string> {
  const shared = sharedVariables(env)
  const entries = Object.entries(env).flatMap(([name, value]): [string, string][] => {
    const isOurs =
      (name.startsWith('ANNALS_') || shared.has(name)) && !CLIENT_VARIABLES.includes(name)
    return isOurs && value !== undefined && !isInjected(name, value) ? [[name, value]] : []
  })
  return new Map(entries)
}

/** Sign-in with OpenID Connect needs all of its settings or none. */
function oidcProblems(isSet: (name: keyof typeof OPTIONS) => boolean): string[] {
  const needed = ['oidcIssuer', 'oidcClientId', 'oidcClientSecret'] as const
  const given = needed.find(isSet)
  if (given === undefined) return []
  return [...needed, 'publicUrl' as const]
    .filter((name) => !isSet(name))
    .map((name) => `${OPTIONS[name].variable} is required with ${OPTIONS[given].variable}`)
}

function isInjected(name: string, value: string): boolean {
  if (INJECTED.some((pattern) => pattern.test(name))) return true
  return PORT_NAME.test(name) && INJECTED_PORT.test(value)
}

function cidr(value: string): string {
  const parsed = parseCidr(value)
  if (parsed === null) throw new Error(`must contain addresses or CIDR ranges, got "${value}"`)
  return parsed
}

function databaseUrl(value: string): Secret<string> {
  parseDatabaseUrl(value)
  return new Secret(value)
}

function replicaUrl(value: string): Secret<string> {
  parseReplicaUrl(value)
  return new Secret(value)
}

/** Plain http would let anyone on the network sign in as anyone, so only this machine can use it. */
function issuerUrl(value: string): string {
  if (URL.canParse(value)) {
    const { protocol, hostname, search, hash, username } = new URL(value)
    const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))
    if (isSafe && `${search}${hash}${username}` === '' && value.length <= 500) return value
  }
  throw new Error('must be a URL that starts with https:, without parameters')
}

function scopes(value: string): string {
  const named = value.split(' ').filter((scope) => scope !== '')
  if (!named.includes('openid') || !named.includes('email')) {
    throw new Error('must contain openid and email')
  }
  return named.join(' ')
}

function secretKey(value: string): Secret<Buffer> {
  const key = parseSecretKey(value)
  if (!key)
    throw new Error('must be 32 bytes in base64 (to create one, run: openssl rand -base64 32)')
  return key
}
