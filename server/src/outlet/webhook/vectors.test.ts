import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'

import { createSigner } from './secret/signature.ts'
import { contractKey, standardKey } from './secret/webhook-secret.ts'

type Signed = {
  title: string
  deliveryId: string
  timestamp: number
  body: string
  'x-service-signature': string
  'webhook-signature': string
}
type Vectors = {
  cases: (Signed & { secrets: string[]; standardKeys: string[]; bodyBytes: number })[]
  refused: (Signed & { secret: string })[]
  replayed: (Signed & { secret: string })[]
}
type Snippet = {
  isSigned: (rawBody: Buffer, header: string | undefined, secret: string) => boolean
}

const root = new URL('../../../../', import.meta.url)
const vectors: Vectors = JSON.parse(readFileSync(new URL('vectors/webhook.json', root), 'utf8'))
const document = readFileSync(new URL('docs/webhooks.md', root), 'utf8')

/** This suite uses only node:crypto, and none of our code. */
suite('the test vectors follow from the documentation alone', () => {
  for (const signed of vectors.cases) {
    test(signed.title, () => {
      const body = Buffer.from(signed.body, 'utf8')
      assert.equal(body.length, signed.bodyBytes)
      const [first = ''] = signed.secrets
      assert.equal(signed['x-service-signature'], bodySignature(Buffer.from(first), body))
      assert.equal(
        signed['webhook-signature'],
        signed.standardKeys.map((key) => standardSignature(key, signed)).join(' '),
      )
    })
  }
})

suite('the code agrees with the test vectors', () => {
  for (const signed of vectors.cases) {
    test(signed.title, () => {
      const { secrets, deliveryId, timestamp, body } = signed
      const [current = '', next = null] = secrets
      const headers = createSigner({ current, next })({
        body: Buffer.from(body),
        deliveryId,
        attempt: 1,
        sequence: 1,
        timestampSeconds: timestamp,
        traceId: null,
        isTest: false,
      })
      assert.equal(headers['x-service-signature'], signed['x-service-signature'])
      assert.equal(headers['webhook-signature'], signed['webhook-signature'])
      assert.deepEqual(
        secrets.map((secret) => standardKey(secret).toString('hex')),
        signed.standardKeys,
      )
    })
  }

  for (const signed of vectors.refused) {
    test(`rejected in both headers: ${signed.title}`, () => {
      const key = contractKey(signed.secret)
      const body = Buffer.from(signed.body)
      assert.notEqual(signed['x-service-signature'], bodySignature(key, body))
      const standard = standardSignature(standardKey(signed.secret).toString('hex'), signed)
      assert.equal(signed['webhook-signature'].split(' ').includes(standard), false)
    })
  }

  for (const signed of vectors.replayed) {
    test(`rejected in webhook-signature only: ${signed.title}`, () => {
      const key = contractKey(signed.secret)
      assert.equal(signed['x-service-signature'], bodySignature(key, Buffer.from(signed.body)))
      const standard = standardSignature(standardKey(signed.secret).toString('hex'), signed)
      assert.equal(signed['webhook-signature'].split(' ').includes(standard), false)
    })
  }
})

test('the Node code in docs/webhooks.md distinguishes the test vectors', async () => {
  const [, code = ''] = /^```js\n(import \{ createHmac.*?)^```$/ms.exec(document) ?? []
  const { isSigned }: Snippet = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  for (const signed of vectors.cases) {
    const [first = '', second] = signed.secrets
    const body = Buffer.from(signed.body)
    assert.equal(isSigned(body, signed['x-service-signature'], first), true, signed.title)
    if (second) assert.equal(isSigned(body, signed['x-service-signature'], second), false)
    assert.equal(isSigned(body, undefined, first), false)
  }
  for (const { title, body, secret, 'x-service-signature': header } of vectors.refused) {
    assert.equal(isSigned(Buffer.from(body), header, secret), false, title)
  }
})

test('the example in docs/webhooks.md is the first test vector', () => {
  const [first] = vectors.cases
  assert(first !== undefined)
  const [, example = ''] = /^```json\n(.*?)^```$/ms.exec(document) ?? []
  assert.equal(JSON.stringify(JSON.parse(example)), first.body)
  assert(document.includes(`-hmac '${first.secrets[0]}'`))
  assert(document.includes(first['x-service-signature'].slice('v1='.length)))
})

function bodySignature(key: Buffer, body: Buffer): string {
  return `v1=${createHmac('sha256', key).update(body).digest('hex')}`
}

function standardSignature(keyHex: string, { deliveryId, timestamp, body }: Signed): string {
  const mac = createHmac('sha256', Buffer.from(keyHex, 'hex'))
  return `v1,${mac.update(`${deliveryId}.${timestamp}.${body}`, 'utf8').digest('base64')}`
}
