/** Names whose values are secrets in most programs. They match in any case, and as a part of a name. */
export const REDACTED_NAMES: readonly string[] = [
  'password',
  'passwd',
  'secret',
  'token',
  'authorization',
  'cookie',
  'session',
  'api_key',
  'apikey',
  'private_key',
  'credential',
  'credit_card',
  'card_number',
  'cvv',
  'ssn',
]

const REDACTED = '[redacted]'
const DEPTH_MAX = 10

/** A copy without the values whose name contains one of these. */
export function redact(value: unknown, names: readonly string[]): unknown {
  return redactAt(value, names.map(normalize), 0)
}

/** The query of a URL as an object, without secrets. A repeated parameter has several values. */
export function redactedQuery(
  parameters: URLSearchParams,
  names: readonly string[],
): Record<string, string | string[]> | null {
  const query: Record<string, string | string[]> = {}
  const normalized = names.map(normalize)
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name)
    const [first = ''] = values
    query[name] = isSecret(name, normalized) ? REDACTED : values.length === 1 ? first : values
  }
  return Object.keys(query).length === 0 ? null : query
}

/**
 * A path without the segments that the route names like a secret, such as `/reset/:token`. If they can't be
 * found in the path, returns the route.
 */
export function redactedPath(
  pathname: string,
  route: string | null,
  names: readonly string[],
): string {
  if (route === null) return pathname
  const normalized = names.map(normalize)
  const isHidden = route.split('/').map((part) => {
    const parameter = /^[:[](.+)$/.exec(part)?.[1]
    return parameter !== undefined && isSecret(parameter, normalized)
  })
  if (!isHidden.includes(true)) return pathname
  const segments = pathname.split('/')
  // Most frameworks ignore a slash at the end.
  const extra = segments.length - isHidden.length
  if (extra !== 0 && (extra !== 1 || segments.at(-1) !== '')) return route
  return segments.map((segment, nth) => (isHidden[nth] ? REDACTED : segment)).join('/')
}

function redactAt(value: unknown, names: readonly string[], depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  // Values below this depth aren't searched, so they are all hidden.
  if (depth >= DEPTH_MAX) return REDACTED
  if (Array.isArray(value)) return value.map((item) => redactAt(item, names, depth + 1))
  // What JSON.stringify would use: the models of many database libraries have it.
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return redactAt(value.toJSON(), names, depth + 1)
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      isSecret(name, names) ? REDACTED : redactAt(item, names, depth + 1),
    ]),
  )
}

function isSecret(name: string, names: readonly string[]): boolean {
  const normalized = normalize(name)
  return names.some((secret) => normalized.includes(secret))
}

/** `api_key`, `apiKey` and `API-Key` are the same name. */
function normalize(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}
