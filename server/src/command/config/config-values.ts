import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { archiveUrlOf } from '../../archive-url-of.ts'
import { baseUrlOf } from '../../base-url.ts'
import { type Config, givenVariables, OPTIONS, parseConfig } from '../../config.ts'
import { Secret } from '../../platform/secret/secret.ts'

/** A variable as the service uses it. Secrets are masked. `file` contains the value, if the source is a file. */
export type ConfigValue = {
  variable: string
  /** Null if it is not set and has no default. */
  value: string | null
  source: 'default' | 'environment' | 'file'
  file: string | null
}

type OptionName = keyof typeof OPTIONS

const MASK = '[secret]'
const NAMES = Object.keys(OPTIONS).filter((name): name is OptionName => name in OPTIONS)
/** These are secret because of a password in them. The rest of the URL is shown. */
const SECRET_URLS: readonly OptionName[] = ['databaseUrl', 'replicaUrl', 'smtpUrl']
const OTLP_ENDPOINTS: readonly OptionName[] = [
  'otlpEndpoint',
  'otlpTracesEndpoint',
  'otlpMetricsEndpoint',
]
const STANDARD_PATHS = ['/', '/v1/traces', '/v1/metrics']
const KEY_FILES: Partial<Record<OptionName, 'secretKeyFile' | 'signingKeyFile'>> = {
  secretKey: 'secretKeyFile',
  signingKey: 'signingKeyFile',
}

/** Every variable, in the order of the documentation. Throws an OperatorError if one is invalid. */
export function configValues(env: Record<string, string | undefined>): ConfigValue[] {
  const config = parseConfig(env)
  const given = givenVariables(env)
  return NAMES.map((name) => {
    const { variable } = OPTIONS[name]
    const raw = given.get(variable)
    if (raw === undefined) return { variable, ...unsetValue(name, config, given) }
    return { variable, value: shownValue(name, raw, config), source: 'environment', file: null }
  })
}

function shownValue(name: OptionName, raw: string, config: Config): string {
  if (name === 'dataDir') return config.dataDir
  const isPath = name === 'secretKeyFile' || name === 'signingKeyFile'
  const isSecret = config[name] instanceof Secret && !isPath && !SECRET_URLS.includes(name)
  if (isSecret) return MASK
  return OTLP_ENDPOINTS.includes(name) ? maskPath(raw) : maskUrls(raw)
}

/** Some receivers expect a token in the path. */
function maskPath(endpoint: string): string {
  const url = URL.parse(endpoint)
  // With OTEL_SDK_DISABLED, an invalid endpoint is ignored.
  if (url === null) return MASK
  return STANDARD_PATHS.includes(url.pathname) ? maskUrls(endpoint) : `${url.origin}/${MASK}`
}

function unsetValue(
  name: OptionName,
  config: Config,
  given: ReadonlyMap<string, string>,
): Omit<ConfigValue, 'variable'> {
  const keyFile = KEY_FILES[name]
  const file = keyFile && given.get(OPTIONS[keyFile].variable)
  if (file !== undefined) return { value: MASK, source: 'file', file }
  if (name === 'secretKey' && config.databaseUrl === null) {
    const generated = join(config.dataDir, 'secret.key')
    if (existsSync(generated)) return { value: MASK, source: 'file', file: generated }
  }
  const derive = DERIVED[name]
  return { value: derive ? derive(config) : OPTIONS[name].fallback, source: 'default', file: null }
}

/** Defaults that follow from other variables. */
const DERIVED: Partial<Record<OptionName, (config: Config) => string | null>> = {
  dataDir: ({ dataDir }) => dataDir,
  archiveUrl: archiveUrlOf,
  publicUrl: baseUrlOf,
  s3Region: ({ s3Endpoint }) => (s3Endpoint === null ? null : 'us-east-1'),
}

/** Parameters of the URLs of databases and mail servers that can't be secret. */
const PLAIN_PARAMETERS = /^(host|port|from|ssl(mode|rootcert|cert)|target_session_attrs)$/

/** Hides passwords and unknown parameters in URLs. The URLs are valid, so a slash ends the login. */
export function maskUrls(text: string): string {
  return text
    .replaceAll(/:\/\/([^/?#\s:]*):[^/?#\s]*@/g, `://$1:${MASK}@`)
    .replaceAll(/([?&])([^=&#\s]*)=([^&#\s]*)/g, (all, mark: string, name: string) =>
      PLAIN_PARAMETERS.test(name) ? all : `${mark}${name}=${MASK}`,
    )
}
