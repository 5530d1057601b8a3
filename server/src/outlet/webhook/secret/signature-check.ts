import { createHmac } from 'node:crypto'
import { layoutsOf } from './json-layout.ts'
import { contractKey, standardKey } from './webhook-secret.ts'

/**
 * What a receiver can check: the bytes it received and a signature, either ours or computed by its own
 * code.
 */
type SignatureCheckRequest = {
  body: string
  /** The value of `x-service-signature` or of `webhook-signature`. */
  signature: string
  /** The values of `webhook-id` and `webhook-timestamp`. Only `webhook-signature` covers them. */
  id: string | null
  timestamp: string | null
  /** The secret that the receiver uses, if given for comparison. */
  secret: string | null
}

export const SIGNATURE_FINDINGS = [
  'valid',
  'prefix_missing',
  'encoding',
  'next_secret',
  'other_secret',
  'key_form',
  'newline',
  'reserialized',
  'timestamp_included',
  'id_or_timestamp_missing',
  'unreadable',
  'no_match',
] as const
export type SignatureFinding = (typeof SIGNATURE_FINDINGS)[number]

type SignatureCheckResult = { finding: SignatureFinding; explanation: string }

type NamedKey = { key: Buffer; finding: SignatureFinding | null; explanation: string }
type NamedBody = { text: string; finding: SignatureFinding | null; explanation: string }

/**
 * Finds out why a signature doesn't match by trying common mistakes: each key with each form of the body.
 * `secrets` are the current one, and the next one during a rotation's overlap. Yields after each try, because
 * a body can be large.
 */
export function* checkSignature(
  question: SignatureCheckRequest,
  secrets: { current: string; next: string | null },
): Generator<void, SignatureCheckResult, void> {
  const signature = question.signature.trim()
  if (/(?:^|\s)v1,/.test(signature))
    return yield* checkStandard({ ...question, signature }, secrets)
  const digest = readDigest(signature)
  if (digest === null) {
    return checkResult(
      'unreadable',
      'The signature is not an HMAC-SHA-256. It must be v1= and 64 hex digits.',
    )
  }
  const bodies = yield* bodiesOf(question)
  const match = yield* findMatch(digest.bytes, keysOf(secrets), bodies)
  if (!match && question.secret !== null) {
    const given = keysOf({ current: question.secret, next: null })
    if (yield* findMatch(digest.bytes, given, bodies))
      return checkResult('other_secret', OTHER_SECRET_TEXT)
  }
  if (!match) {
    return checkResult(
      'no_match',
      "The signature doesn't match any secret of this webhook, for this body in any common form. Either it was created with another secret (from before the last rotation, or of another webhook), or the body is not the one that was signed. Log the raw bytes before anything parses them, and compare the label of the secret.",
    )
  }
  const { key, body } = match
  const problem = body.finding ? body : key.finding ? key : null
  if (problem?.finding) return checkResult(problem.finding, problem.explanation)
  return digest.finding
    ? checkResult(digest.finding, digest.explanation)
    : checkResult('valid', 'The signature is valid: it matches the body and the secret.')
}

const OTHER_SECRET_TEXT =
  'The signature matches the secret that you entered, but this webhook uses a different one. Your secret is from before a rotation, or of another webhook. Rotate the secret here and configure the new one in your receiver.'

function* checkStandard(
  { body, signature, id, timestamp }: SignatureCheckRequest,
  { current, next }: { current: string; next: string | null },
): Generator<void, SignatureCheckResult, void> {
  if (id === null || timestamp === null) {
    return checkResult(
      'id_or_timestamp_missing',
      'webhook-signature covers "<webhook-id>.<webhook-timestamp>.<body>". Enter the values of these two headers as well.',
    )
  }
  const digests = signature
    .split(/\s+/)
    .filter((part) => part.startsWith('v1,'))
    .map((part) => Buffer.from(part.slice(3), 'base64'))
  const isMatch = (key: Buffer, text: string): boolean => {
    const expected = createHmac('sha256', key).update(`${id}.${timestamp}.${text}`).digest()
    return digests.some((digest) => digest.equals(expected))
  }
  for (const { text, finding, explanation } of yield* bodiesOf({ body, id, timestamp })) {
    yield
    if (isMatch(standardKey(current), text)) {
      return finding ? checkResult(finding, explanation) : checkResult('valid', VALID_STANDARD_TEXT)
    }
    if (next !== null && isMatch(standardKey(next), text))
      return checkResult('next_secret', NEXT_SECRET_TEXT)
    if (isMatch(contractKey(current), text)) {
      return checkResult(
        'key_form',
        'The signature was created with the text of the secret. For webhook-signature, the key is the decoded base64 after whsec_.',
      )
    }
  }
  return checkResult(
    'no_match',
    'No part of webhook-signature matches. The secret, the body, the id or the timestamp is not the one that was signed.',
  )
}

const VALID_STANDARD_TEXT =
  'The signature is valid: it matches the body, the id, the timestamp and the secret.'
const NEXT_SECRET_TEXT =
  'The signature matches the new secret of the rotation in progress. Until the overlap ends, x-service-signature uses the old secret, and webhook-signature contains both.'

function readDigest(
  signature: string,
): { bytes: Buffer; finding: SignatureFinding | null; explanation: string } | null {
  const bare = signature.replace(/^(?:v1|sha256)=/i, '')
  if (/^[0-9a-f]{64}$/i.test(bare)) {
    const bytes = Buffer.from(bare, 'hex')
    if (signature.startsWith('v1=') && bare === bare.toLowerCase()) {
      return { bytes, finding: null, explanation: '' }
    }
    const explanation =
      'The digest is right, but its format is not: the header is v1= and 64 lowercase hex digits. Compare bytes, or use this format.'
    return { bytes, finding: 'prefix_missing', explanation }
  }
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(bare)) {
    const explanation =
      'The digest is right, but in base64, and x-service-signature is in hex. Change the encoding of your HMAC to hex.'
    return { bytes: Buffer.from(bare, 'base64'), finding: 'encoding', explanation }
  }
  return null
}

function keysOf({ current, next }: { current: string; next: string | null }): NamedKey[] {
  const decoded = (secret: string): NamedKey => ({
    key: standardKey(secret),
    finding: 'key_form',
    explanation:
      'The signature was created with the decoded base64 after whsec_. For x-service-signature, the key is the whole secret as it was shown, including whsec_.',
  })
  const keys: NamedKey[] = [{ key: contractKey(current), finding: null, explanation: '' }]
  if (next !== null)
    keys.push({ key: contractKey(next), finding: 'next_secret', explanation: NEXT_SECRET_TEXT })
  keys.push(decoded(current))
  if (next !== null) keys.push(decoded(next))
  return keys
}

const NEWLINE_TEXT =
  'The body differs from what was signed by a line break. Use the raw bytes of the request: an editor, a shell or a framework added or changed a newline.'

/** The body in every form that may have been signed by mistake, without duplicates. */
function* bodiesOf({
  body,
  timestamp,
}: Pick<SignatureCheckRequest, 'body' | 'id' | 'timestamp'>): Generator<void, NamedBody[], void> {
  const bodies: NamedBody[] = [{ text: body, finding: null, explanation: '' }]
  const newline = (text: string) =>
    bodies.push({ text, finding: 'newline', explanation: NEWLINE_TEXT })
  newline(body.replace(/\r?\n$/, ''))
  newline(`${body}\n`)
  yield
  newline(body.replaceAll('\r\n', '\n'))
  yield
  newline(body.trim())
  const { compact, pretty } = yield* layoutsOf(body)
  bodies.push({
    text: compact,
    finding: 'reserialized',
    explanation:
      'The body was parsed and serialized again: it matches without the whitespace. Verify the raw bytes of the request, before any JSON parser.',
  })
  if (pretty !== null) {
    bodies.push({
      text: pretty,
      finding: 'reserialized',
      explanation:
        'The signature covers a pretty-printed copy of the body. Sign the raw bytes of the request.',
    })
  }
  if (timestamp !== null) {
    bodies.push({
      text: `${timestamp}.${body}`,
      finding: 'timestamp_included',
      explanation:
        'The signature covers the timestamp and the body. x-service-signature covers only the body; webhook-signature covers both.',
    })
  }
  const seen = new Set<string>()
  return bodies.filter(({ text }) => !seen.has(text) && seen.add(text))
}

function* findMatch(
  digest: Buffer,
  keys: readonly NamedKey[],
  bodies: readonly NamedBody[],
): Generator<void, { key: NamedKey; body: NamedBody } | null, void> {
  for (const key of keys) {
    for (const body of bodies) {
      yield
      const made = createHmac('sha256', key.key).update(body.text).digest()
      if (made.equals(digest)) return { key, body }
    }
  }
  return null
}

function checkResult(finding: SignatureFinding, explanation: string): SignatureCheckResult {
  return { finding, explanation }
}
