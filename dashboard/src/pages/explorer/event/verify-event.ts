/** An event as the service returns it, with everything that its hash depends on. */
export type VerifiableEvent = {
  id: string
  seq: number
  companyId: string
  workspaceId: string
  projectId: string | null
  timestamp: string
  receivedAt: string
  category: string
  action: string
  traceId: string | null
  actor: object | null
  resource: object | null
  metadata: object | null
  sealed: object
  salts: object
  prevHash: string
  hash: string
}

const PARTS = ['actor', 'metadata', 'resource'] as const
type Part = (typeof PARTS)[number]

type EventCheck = {
  /** The hash as computed here. */
  hash: string
  /** Parts that were erased together with their salts. The chain stays valid without them. */
  erased: Part[]
  /** One sentence per difference. Empty if the event is unchanged since it was sealed. */
  differences: string[]
}

/**
 * Recomputes the commitments and the hash of one event as docs/chain-format.md specifies, using only
 * browser APIs. It shares no code with the service, so it can't share a bug.
 */
export async function verifyEvent(event: VerifiableEvent): Promise<EventCheck> {
  const differences = [
    ...unknownParts('sealed', event.sealed),
    ...unknownParts('salts', event.salts),
  ]
  const erased: Part[] = []
  for (const part of PARTS) {
    const { difference, isErased } = await verifyPart(event, part)
    if (difference !== null) differences.push(difference)
    if (isErased) erased.push(part)
  }
  const hash = await hashOf(event)
  if (hash !== event.hash) differences.push('The hash does not match the event.')
  return { hash, erased, differences }
}

/** False if the page has no WebCrypto, which browsers restrict to HTTPS and localhost. */
export function canVerify(): boolean {
  return typeof globalThis.crypto?.subtle !== 'undefined'
}

type PartCheck = { difference: string | null; isErased: boolean }

async function verifyPart(event: VerifiableEvent, part: Part): Promise<PartCheck> {
  const value = event[part]
  const commitment = hexOf(event.sealed, part, 64)
  const salt = hexOf(event.salts, part, 32)
  if (commitment === 'malformed' || salt === 'malformed') {
    return differs(`The commitment or the salt of ${part} is malformed.`)
  }
  if (value === null) {
    if (salt !== null)
      return differs(`The value of ${part} is missing, but its salt is still there.`)
    return { difference: null, isErased: commitment !== null }
  }
  if (commitment === null || salt === null) return differs(`The event was sealed without ${part}.`)
  const recomputed = await commitmentOf(part, value, salt)
  return recomputed === commitment
    ? VALID
    : differs(`The value of ${part} has changed since it was sealed.`)
}

const VALID: PartCheck = { difference: null, isErased: false }

function differs(difference: string): PartCheck {
  return { difference, isErased: false }
}

function unknownParts(where: string, parts: object): string[] {
  const known: readonly string[] = PARTS
  return Object.keys(parts)
    .filter((name) => !known.includes(name))
    .map((name) => `“${name}” in ${where} is not a part of an event.`)
}

function hexOf(parts: object, part: Part, digits: number): string | null {
  const value: unknown = Object.hasOwn(parts, part) ? Reflect.get(parts, part) : undefined
  if (value === undefined) return null
  const isHex = typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value)
  return isHex ? value : 'malformed'
}

async function commitmentOf(part: Part, value: object, salt: string): Promise<string> {
  const { subtle } = globalThis.crypto
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await subtle.importKey('raw', bytesOf(salt), algorithm, false, ['sign'])
  const message = new TextEncoder().encode(`annals/v1/${part}\0${canonical(value)}`)
  return toHex(await subtle.sign('HMAC', key, message))
}

async function hashOf(event: VerifiableEvent): Promise<string> {
  const core = new TextEncoder().encode(`\0${coreOf(event)}`)
  return toHex(await globalThis.crypto.subtle.digest('SHA-256', core))
}

/** The text to hash. */
export function coreOf(event: VerifiableEvent): string {
  const { id, seq, companyId, workspaceId, projectId, timestamp, receivedAt } = event
  const { category, action, traceId, sealed, prevHash } = event
  const place = { v: 1, id, seq, companyId, workspaceId, projectId, timestamp, receivedAt }
  return canonical({ ...place, category, action, traceId, sealed, prevHash })
}

/** RFC 8785. JSON.stringify already formats strings and numbers so; keys sort by UTF-16 code units. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`
}

function bytesOf(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

function toHex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
}
