import { Secret } from '../secret/secret.ts'

/* Parsers of the standard OpenTelemetry variables. Their errors leave out values that can be secret. */

export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const
export type SamplerName = (typeof SAMPLERS)[number]

export const EXPORTERS = ['otlp', 'none'] as const

const PROTOCOL = 'http/json'

/**
 * Whether the environment asks for an export. Platforms set variables such as `OTEL_SERVICE_NAME` for every
 * process, so if nothing is exported they are ignored, even if they are invalid.
 */
export function isExportOn(env: Record<string, string | undefined>): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false
  return ['TRACES', 'METRICS'].some((signal) => {
    const hasEndpoint =
      env.OTEL_EXPORTER_OTLP_ENDPOINT || env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]
    return hasEndpoint && env[`OTEL_${signal}_EXPORTER`] !== 'none'
  })
}

export function parseOtlpProtocol(value: string): typeof PROTOCOL {
  if (value === PROTOCOL) return PROTOCOL
  throw new Error(
    `must be ${PROTOCOL}, got "${value}"; Annals sends OTLP as JSON over HTTP, which collectors accept on the HTTP port, usually 4318`,
  )
}

export function parseOtlpEndpoint(value: string): string {
  const url = URL.parse(value)
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url && isHttp && `${url.username}${url.password}${url.hash}` === '') return url.href
  throw new Error(
    'must be a URL that starts with http: or https:, without a user name (set OTEL_EXPORTER_OTLP_HEADERS instead)',
  )
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e]*$/
const OWN_HEADERS = /^(connection|content-.*|expect|host|keep-alive|te|transfer-encoding|upgrade)$/i

export function parseOtlpHeaders(value: string): Secret<Record<string, string>> {
  const headers = readPairs(value)
  const isValid = headers.every(
    ([name, text]) => HEADER_NAME.test(name) && !OWN_HEADERS.test(name) && HEADER_VALUE.test(text),
  )
  if (!isValid) throw new Error('must contain only headers that a request can have')
  return new Secret(Object.fromEntries(headers))
}

export function parseResourceAttributes(value: string): Readonly<Record<string, string>> {
  return Object.fromEntries(readPairs(value))
}

export function parseRatio(value: string): number {
  const ratio = value.trim() === '' ? Number.NaN : Number(value)
  if (ratio >= 0 && ratio <= 1) return ratio
  throw new Error(`must be a number from 0 to 1, got "${value}"`)
}

/** `name=value` pairs, separated by commas, with percent-encoded values. */
function readPairs(value: string): [string, string][] {
  return value
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [, name = '', text = ''] = /^([^=]+)=(.*)$/.exec(pair) ?? []
      try {
        if (name !== '') return [name.trim(), decodeURIComponent(text.trim())]
      } catch {
        // The error below covers it.
      }
      throw new Error('must be name=value pairs, separated by commas, with percent-encoded values')
    })
}
