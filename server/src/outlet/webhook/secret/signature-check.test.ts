import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { BAD_TEXTS, VALID_OBJECTS } from '../../../../test/harness/http/hostile-bodies.ts'
import { checkSignature, type SignatureFinding } from './signature-check.ts'
import { runAtOnce } from '../../../platform/scheduling/time-slice.ts'
import { createSigner } from './signature.ts'
import { newWebhookSecret } from './webhook-secret.ts'

const current = newWebhookSecret()
const next = newWebhookSecret()
const BODY = '{"id":"1","category":"billing","metadata":{"note":"a  b, c\\"d"}}'

const headers = createSigner({ current, next })({
  body: BODY,
  deliveryId: 'd-1',
  attempt: 1,
  sequence: 1,
  timestampSeconds: 1_700_000_000,
  traceId: null,
  isTest: false,
})
const SENT = headers['x-service-signature'] ?? ''
const STANDARD = headers['webhook-signature'] ?? ''

function hmac(secret: string | Buffer, body: string): Buffer {
  return createHmac('sha256', secret).update(body).digest()
}

const hex = (secret: string | Buffer, body: string) => `v1=${hmac(secret, body).toString('hex')}`

function findingOf(
  { body = BODY, signature = SENT, id = 'd-1', timestamp = '1700000000', secret = '' },
  secrets: { current: string; next: string | null } = { current, next: null },
): SignatureFinding {
  const question = {
    body,
    signature,
    id: id || null,
    timestamp: timestamp || null,
    secret: secret || null,
  }
  const { finding, explanation } = runAtOnce(checkSignature(question, secrets))
  assert.match(explanation, /\.$/, 'a sentence')
  assert(!explanation.includes(current) && !explanation.includes(next), 'no secret is revealed')
  return finding
}

test('accepts our own signatures, in both headers', () => {
  assert.equal(findingOf({}), 'valid')
  assert.equal(findingOf({ signature: ` ${SENT}\n` }), 'valid')
  assert.equal(findingOf({ signature: STANDARD }), 'valid')
})

test('names each common mistake of receivers', () => {
  const decoded = Buffer.from(current.slice('whsec_'.length), 'base64')
  const pretty = JSON.stringify(JSON.parse(BODY), null, 2)
  const found: Record<string, SignatureFinding> = {
    'bare hex': findingOf({ signature: SENT.slice(3) }),
    'upper case': findingOf({ signature: SENT.toUpperCase().replace('V1', 'v1') }),
    base64: findingOf({ signature: hmac(current, BODY).toString('base64') }),
    'the decoded secret': findingOf({ signature: hex(decoded, BODY) }),
    'a pasted newline': findingOf({ body: `${BODY}\n` }),
    'a newline signed too': findingOf({ signature: hex(current, `${BODY}\n`) }),
    'a parsed body': findingOf({ body: pretty }),
    'a pretty copy signed': findingOf({ signature: hex(current, pretty) }),
    'the timestamp signed too': findingOf({ signature: hex(current, `1700000000.${BODY}`) }),
    'another secret': findingOf({ signature: hex('old secret', BODY) }),
    'the secret they pasted': findingOf({
      signature: hex('old secret', BODY),
      secret: 'old secret',
    }),
    'another body': findingOf({ body: BODY.replace('billing', 'auth') }),
    nonsense: findingOf({ signature: 'v1=hello' }),
    'standard without its id': findingOf({ signature: STANDARD, id: '' }),
    'standard with another timestamp': findingOf({ signature: STANDARD, timestamp: '1700000001' }),
  }
  assert.deepEqual(found, {
    'bare hex': 'prefix_missing',
    'upper case': 'prefix_missing',
    base64: 'encoding',
    'the decoded secret': 'key_form',
    'a pasted newline': 'newline',
    'a newline signed too': 'newline',
    'a parsed body': 'reserialized',
    'a pretty copy signed': 'reserialized',
    'the timestamp signed too': 'timestamp_included',
    'another secret': 'no_match',
    'the secret they pasted': 'other_secret',
    'another body': 'no_match',
    nonsense: 'unreadable',
    'standard without its id': 'id_or_timestamp_missing',
    'standard with another timestamp': 'no_match',
  })
})

test('recognizes the new secret during a rotation, and says that it is early', () => {
  const both = { current, next }
  assert.equal(findingOf({ signature: hex(next, BODY) }, both), 'next_secret')
  assert.equal(findingOf({ signature: SENT }, both), 'valid')
})

test('checks any body quickly', () => {
  const deep = `${'['.repeat(63)}${'1,'.repeat(99_000)}1${']'.repeat(63)}`
  const shapes = [...VALID_OBJECTS, ...BAD_TEXTS].map(({ text }) => text(BODY_CHARS))
  for (const body of [...shapes, deep, '\r\n'.repeat(BODY_CHARS / 2)]) {
    const tries: number[] = []
    do tries.push(longestStepMs(body))
    while (Math.min(...tries) > 20 && tries.length < 3)
    assert(Math.min(...tries) <= 20, `${body.slice(0, 20)}: ${tries.join()} ms`)
  }
})

/** The longest body that the route accepts. */
const BODY_CHARS = 200_000

function longestStepMs(body: string): number {
  const question = {
    body,
    signature: `v1=${'0'.repeat(64)}`,
    id: null,
    timestamp: '1',
    secret: 'x',
  }
  const steps = checkSignature(question, { current, next })
  let longestMs = 0
  for (let isDone = false; !isDone;) {
    const before = process.threadCpuUsage()
    isDone = steps.next().done === true
    const { user, system } = process.threadCpuUsage(before)
    longestMs = Math.max(longestMs, (user + system) / 1_000)
  }
  return longestMs
}
