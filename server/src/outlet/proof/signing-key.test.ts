import assert from 'node:assert/strict'
import { createPublicKey, randomBytes, verify } from 'node:crypto'
import { test } from 'node:test'
import { Secret } from '../../platform/secret/secret.ts'
import { deriveSeed, signCheckpoint, signingKeyOf, vkeyOf } from './signing-key.ts'

test('has the keys and signatures of RFC 8032', () => {
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
  const key = signingKeyOf(new Secret(Buffer.from(seed, 'hex')))
  assert.equal(
    key.publicKey.toString('hex'),
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  )
  assert.equal(
    key.sign('').toString('hex'),
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  )
})

test('a verifier key is that of the signed-note specification’s example', () => {
  const publicKey = Buffer.from('6TJ5GubnqECkYWTJBHhkJtXngh3YspoA1hyucq/dTaQ=', 'base64')
  assert.equal(
    vkeyOf('example.com/foo', publicKey),
    'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k',
  )
})

test('a checkpoint has the format of the specification, with one valid signature per key', () => {
  const keys = [0, 1].map(() => signingKeyOf(new Secret(randomBytes(32))))
  const origin = 'example.com/behind-the-sofa'
  const root = randomBytes(32)
  const note = signCheckpoint({ origin, size: 20_852_163, root }, keys)
  const [body = '', signatures = ''] = note.split('\n\n')
  assert.equal(`${body}\n`, `${origin}\n20852163\n${root.toString('base64')}\n`)
  const lines = signatures.split('\n')
  assert.deepEqual([lines.length, lines.pop()], [3, ''])
  for (const [nth, { publicKey }] of keys.entries()) {
    const [dash, name, text = ''] = lines[nth]?.split(' ') ?? []
    assert.deepEqual([dash, name], ['—', origin])
    const bytes = Buffer.from(text, 'base64')
    assert.equal(vkeyOf(origin, publicKey).split('+')[1], bytes.subarray(0, 4).toString('hex'))
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicKey])
    const verifier = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    assert(verify(null, Buffer.from(`${body}\n`), verifier, bytes.subarray(4)))
  }
})

test('a derived key depends on the secret key and the generation', () => {
  const secretKey = new Secret(randomBytes(32))
  const publicKeys = [
    deriveSeed(secretKey, 0),
    deriveSeed(secretKey, 1),
    deriveSeed(new Secret(randomBytes(32)), 0),
  ].map((seed) => signingKeyOf(seed).publicKey.toString('hex'))
  assert.equal(new Set(publicKeys).size, 3)
  const again = signingKeyOf(deriveSeed(secretKey, 0))
  assert.equal(again.publicKey.toString('hex'), publicKeys[0])
})
