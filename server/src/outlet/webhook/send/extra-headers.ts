import type { SecretBox } from '../../../platform/secret/secret-box.ts'
import { parseJson } from '../../../platform/json/parse-json.ts'

/** Headers that a receiver requires, by name. The values are secret. */
export type ExtraHeaders = Record<string, string>

export const EXTRA_HEADERS_MAX = 10
export const HEADER_VALUE_CHARS_MAX = 1_024
const NAME_CHARS_MAX = 64

const NAME = /^[\w!#$%&'*+.^`|~-]+$/
/** Headers that we set, that describe the connection or the body, or that link traces. */
const REFUSED = [
  'connection',
  'expect',
  'host',
  'keep-alive',
  'te',
  'traceparent',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-trace-id',
]
const REFUSED_PREFIXES = ['content-', 'webhook-', 'x-service-']

/** Returns the first name that can't be used, and why, or null. */
export function headerFault(headers: ExtraHeaders): { name: string; message: string } | null {
  const known = new Set<string>()
  for (const [name, value] of Object.entries(headers)) {
    const folded = name.toLowerCase()
    const message = nameFault(folded) ?? valueFault(value)
    if (message !== null) return { name, message }
    if (known.has(folded)) return { name, message: 'must appear only once, in any case' }
    known.add(folded)
  }
  return null
}

function nameFault(name: string): string | null {
  if (name.length > NAME_CHARS_MAX) return `must not have more than ${NAME_CHARS_MAX} characters`
  if (!NAME.test(name)) return 'is not a valid header name'
  const isRefused =
    REFUSED.includes(name) || REFUSED_PREFIXES.some((prefix) => name.startsWith(prefix))
  return isRefused ? 'is reserved for Annals or for HTTP' : null
}

/** The schema checks everything else. */
function valueFault(value: string): string | null {
  return value.trim() === value ? null : 'must not start or end with a space'
}

/** Null if there are none. Bound to the webhook and to this use, so it can't be read as a secret. */
export function sealHeaders(
  headers: ExtraHeaders,
  webhookId: string,
  box: SecretBox,
): Buffer | null {
  const hasHeaders = Object.keys(headers).length > 0
  return hasHeaders ? box.seal(JSON.stringify(headers), associatedOf(webhookId)) : null
}

/** Returns null if they can't be decrypted with this service's key. */
export function openHeaders(
  sealed: Buffer | null,
  webhookId: string,
  box: SecretBox,
): ExtraHeaders | null {
  if (sealed === null) return {}
  const text = box.open(sealed, associatedOf(webhookId))
  return text === null ? null : parseJson(text)
}

function associatedOf(webhookId: string): string {
  return `${webhookId}/headers`
}
