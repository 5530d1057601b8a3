import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COSIGNATURE, LOG_SIGNATURE, noteKeyText } from './signed-note.ts'
import { parseWitness } from './witness-setting.ts'

const publicKey = Buffer.alloc(32, 7)
const VKEY = noteKeyText({ name: 'witness.example', type: COSIGNATURE, publicKey })

test('parses a witness as a URL and a verifier key', () => {
  const { url, vkey, key } = parseWitness(`http://10.0.0.1:8090/w/  ${VKEY}`)
  assert.deepEqual([url, vkey, key.name], ['http://10.0.0.1:8090/w', VKEY, 'witness.example'])
})

for (const [text, sentence] of [
  ['https://witness.example', /a URL and a verifier key for each witness/],
  [`https://witness.example ${VKEY} x`, /a URL and a verifier key for each witness/],
  [`ftp://witness.example ${VKEY}`, /URLs that start with http/],
  [`https://a:b@witness.example ${VKEY}`, /without a password/],
  [`https://witness.example?x ${VKEY}`, /without parameters/],
  [`https://witness.example ${VKEY.replace('+', '+0')}`, /verifier keys of witnesses/],
  [
    `https://witness.example ${noteKeyText({ name: 'log', type: LOG_SIGNATURE, publicKey })}`,
    /verifier keys of witnesses/,
  ],
] as const) {
  test(`refuses ${text}`, () => assert.throws(() => parseWitness(text), sentence))
}
