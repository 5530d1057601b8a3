import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { standardKey } from './signature.ts'
import {
  verifyWebhook,
  type VerifyOptions,
  type WebhookRequest,
  WebhookVerificationError,
} from './verify-webhook.ts'

type Case = {
  title: string
  secrets: string[]
  standardKeys: string[]
  deliveryId: string
  timestamp: number
  body: string
  'x-service-signature': string
  'webhook-signature': string
}
type Refused = Omit<Case, 'secrets' | 'standardKeys'> & { secret: string }

const path = join(import.meta.dirname, '../../../vectors/webhook.json')
const vectors: { cases: Case[]; refused: Refused[]; replayed: Refused[] } = JSON.parse(
  readFileSync(path, 'utf8'),
)
const EVENT = '{"id":"1","action":"a"}'
const SCHEMES = ['standard', 'service'] as const

function requestOf(
  example: Omit<Case, 'secrets' | 'standardKeys'>,
  body: WebhookRequest['body'] = example.body,
) {
  const headers: Record<string, string> = {
    'Webhook-Id': example.deliveryId,
    'Webhook-Timestamp': String(example.timestamp),
    'Webhook-Signature': example['webhook-signature'],
    'X-Service-Delivery-Id': example.deliveryId,
    'X-Service-Timestamp': String(example.timestamp),
    'X-Service-Signature': example['x-service-signature'],
    'X-Service-Sequence': '7',
    'X-Service-Attempt': '2',
  }
  return { headers, body }
}

async function codeOf(
  request: WebhookRequest,
  secret: string | string[],
  options: VerifyOptions,
): Promise<string> {
  try {
    await verifyWebhook(request, secret, options)
    return 'verified'
  } catch (error) {
    assert(error instanceof WebhookVerificationError)
    return error.code
  }
}

for (const example of vectors.cases) {
  // The bodies of some cases are JSON but not events.
  const isEvent = /"action"/.test(example.body)
  const accepted = isEvent ? 'verified' : 'invalid_delivery'
  const clock = () => example.timestamp * 1_000

  test(`verifies the vector "${example.title}"`, async () => {
    assert.deepEqual(
      example.secrets.map((secret) => Buffer.from(standardKey(secret)).toString('hex')),
      example.standardKeys,
    )
    for (const secret of example.secrets) {
      assert.equal(await codeOf(requestOf(example), secret, { clock }), accepted)
    }
    const scheme = 'service'
    assert.equal(await codeOf(requestOf(example), example.secrets, { clock, scheme }), accepted)
    for (const otherScheme of SCHEMES) {
      const options = { clock, scheme: otherScheme }
      const changed = requestOf(example, `${example.body} `)
      assert.equal(await codeOf(changed, example.secrets, options), 'invalid_signature')
      assert.equal(await codeOf(requestOf(example), 'another', options), 'invalid_signature')
    }
  })
}

for (const example of vectors.refused) {
  test(`refuses the vector "${example.title}"`, async () => {
    const clock = () => example.timestamp * 1_000
    for (const scheme of SCHEMES) {
      const code = await codeOf(requestOf(example), example.secret, { clock, scheme })
      assert.equal(code, 'invalid_signature')
    }
  })
}

for (const example of vectors.replayed) {
  test(`only the standard scheme refuses the replayed vector "${example.title}"`, async () => {
    const clock = () => example.timestamp * 1_000
    const codes = SCHEMES.map((scheme) =>
      codeOf(requestOf(example), example.secret, { clock, scheme }),
    )
    assert.deepEqual(await Promise.all(codes), ['invalid_signature', 'verified'])
  })
}

const [first] = vectors.cases
assert(first)
const clock = () => first.timestamp * 1_000
const [secret = ''] = first.secrets

test('a delivery has its event, its numbers and the time of the attempt', async () => {
  const delivery = await verifyWebhook(requestOf(first), secret, { clock })
  assert.deepEqual(delivery, {
    event: JSON.parse(first.body),
    deliveryId: first.deliveryId,
    sequence: 7,
    attempt: 2,
    sentAt: new Date(first.timestamp * 1_000),
    isTest: false,
  })
})

test('the keys of an event are read correctly, whatever earlier deliveries contained', async () => {
  const metadata = async (json: string) => {
    const body = `{"id":"1","action":"a","metadata":${json}}`
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const { headers } = requestOf(first)
    const request = { headers: { ...headers, 'X-Service-Signature': `v1=${signature}` }, body }
    const { event } = await verifyWebhook(request, secret, { clock, scheme: 'service' })
    return event.metadata
  }
  assert.deepEqual(await metadata(String.raw`{"a":1,"x\\":1}`), { a: 1, 'x\\': 1 })
  assert.deepEqual(await metadata(String.raw`{"a":1,"x\"":2}`), { a: 1, 'x"': 2 })
})

test('the body can be a request, a stream, bytes or text', async () => {
  const { headers } = requestOf(first)
  const bytes = Buffer.from(first.body)
  const request = new Request('http://x', { method: 'POST', headers, body: bytes })
  assert.equal(await codeOf(request, secret, { clock }), 'verified')
  const halves = async function* () {
    yield bytes.subarray(0, 99)
    yield bytes.subarray(99)
  }
  const buffer = new Uint8Array(bytes).buffer
  for (const body of [bytes, buffer, halves(), new Blob([bytes]).stream()]) {
    assert.equal(await codeOf({ headers, body }, secret, { clock }), 'verified')
  }
})

test('a replayed request is refused after five minutes, and with a new time immediately', async () => {
  const lateBy = (seconds: number) => ({ clock: () => (first.timestamp + seconds) * 1_000 })
  for (const seconds of [-300, 300]) {
    assert.equal(await codeOf(requestOf(first), secret, lateBy(seconds)), 'verified')
  }
  for (const seconds of [-301, 301]) {
    const code = await codeOf(requestOf(first), secret, lateBy(seconds))
    assert.equal(code, 'timestamp_out_of_range')
  }
  for (const name of ['Webhook-Timestamp', 'Webhook-Id']) {
    const { headers, body } = requestOf(first)
    const replayed: WebhookRequest = {
      headers: { ...headers, [name]: String(first.timestamp + 400) },
      body,
    }
    assert.equal(await codeOf(replayed, secret, lateBy(400)), 'invalid_signature')
  }
})

test('without its signature, a request is refused although the other scheme matches', async () => {
  for (const [scheme, name] of [
    ['standard', 'Webhook-Signature'],
    ['service', 'X-Service-Signature'],
  ] as const) {
    const { headers, body } = requestOf(first)
    const { [name]: _, ...others } = headers
    const code = await codeOf({ headers: others, body }, secret, { clock, scheme })
    assert.equal(code, 'missing_signature')
  }
})

test('an empty secret is refused, because anyone can sign with it', async () => {
  for (const none of ['', [], [secret, '']]) {
    await assert.rejects(verifyWebhook(requestOf(first), none, { clock }), TypeError)
  }
})

test('a large body is not read to its end', async () => {
  let reads = 0
  const endless = async function* () {
    for (;;) {
      reads += 1
      yield new Uint8Array(1_000)
    }
  }
  const request = { headers: requestOf(first).headers, body: endless() }
  assert.equal(await codeOf(request, secret, { clock, bodyBytesMax: 5_000 }), 'body_too_large')
  assert.equal(reads, 6)
  const text = { headers: request.headers, body: EVENT.padEnd(5_001) }
  assert.equal(await codeOf(text, secret, { clock, bodyBytesMax: 5_000 }), 'body_too_large')
})

test('signatures that are not base64 or have another version are refused', async () => {
  const { headers, body } = requestOf(first)
  for (const signature of ['', 'v1', 'v1,', 'v1,%%', `v2,${first['webhook-signature'].slice(3)}`]) {
    const request = { headers: { ...headers, 'Webhook-Signature': signature }, body }
    assert.equal(await codeOf(request, secret, { clock }), 'invalid_signature', signature)
  }
})
