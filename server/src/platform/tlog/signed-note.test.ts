import assert from 'node:assert/strict'
import { generateKeyPairSync, sign } from 'node:crypto'
import { test } from 'node:test'
import {
  checkNoteSignature,
  COSIGNATURE,
  cosign,
  findCosignature,
  LOG_SIGNATURE,
  noteKeyText,
  parseCheckpoint,
  parseNoteKey,
} from './signed-note.ts'

const NAME = 'example.com/behind-the-sofa'
const BODY = `${NAME}\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n`
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
const bytes = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
const key = { name: NAME, type: LOG_SIGNATURE, publicKey: bytes } as const

function signed(body = BODY): string {
  const keyId = Buffer.from(noteKeyText(key).split('+')[1] ?? '', 'hex')
  const signature = Buffer.concat([keyId, sign(null, Buffer.from(body), privateKey)])
  return `${body}\n— ${NAME} ${signature.toString('base64')}\n`
}

function parsed(text: string) {
  const checkpoint = parseCheckpoint(text)
  assert(checkpoint)
  return checkpoint
}

test('reads the checkpoint of the specification', () => {
  const { origin, size, root, signatures } = parsed(
    `${BODY}\n— ${NAME} Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n`,
  )
  assert.deepEqual([origin, size], [NAME, 20_852_163])
  assert.equal(root.toString('base64'), 'CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=')
  assert.deepEqual([signatures.length, signatures[0]?.keyId], [1, '033de0ae'])
})

test('a key is read back as written, and the example of the specification is valid', () => {
  const text = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k'
  const example = parseNoteKey(text)
  assert(example)
  assert.equal(noteKeyText(example), text)
  for (const bad of ['', 'a+b', text.replace('530d', '530e'), text.replace('Aeky', 'Beky')]) {
    assert.equal(parseNoteKey(bad), null, bad)
  }
})

test('tells valid, missing and forged signatures apart', () => {
  assert.equal(checkNoteSignature(parsed(signed()), key), 'valid')
  const other = { ...key, name: 'example.com/other' }
  assert.equal(checkNoteSignature(parsed(signed()), other), 'missing')
  assert.equal(checkNoteSignature(parsed(signed().replace('20852163', '20852164')), key), 'forged')
  const twice = `${signed()}${parsed(signed(`${BODY}more\n`)) && signed(`${BODY}more\n`).split('\n\n')[1]}`
  assert.equal(checkNoteSignature(parsed(twice), key), 'forged', 'one of two')
})

test('a cosignature is valid for its checkpoint and its time', () => {
  const witness = { name: 'witness.example', publicKey: bytes }
  const line = cosign(
    parsed(signed()),
    { ...witness, sign: (message) => sign(null, message, privateKey) },
    1_679_315_147_999,
  )
  const cosigned = parsed(`${signed()}${line}`)
  const witnessKey = { ...witness, type: COSIGNATURE } as const
  assert.equal(checkNoteSignature(cosigned, witnessKey), 'valid')
  assert.equal(cosigned.signatures[1]?.bytes.readBigUInt64BE(0), 1_679_315_147n)
  const later = Buffer.from(line.split(' ')[2] ?? '', 'base64')
  later.writeUInt8(later.readUInt8(11) + 1, 11)
  const moved = parsed(`${signed()}— witness.example ${later.toString('base64')}\n`)
  assert.equal(checkNoteSignature(moved, witnessKey), 'forged')
})

test('refuses what is not exactly a signed checkpoint', () => {
  const bad = [
    '',
    BODY,
    signed().trimEnd(),
    signed().replace('20852163', '020852163'),
    signed().replace('20852163', '9007199254740993'),
    signed().replace('q2I=', 'q2J='),
    signed().replace('— ', '- '),
    signed().replace(`— ${NAME}`, `— ${NAME}+`),
    signed().replace('\n2085', '\r\n2085'),
    `\n${signed()}`,
    `${signed()}\n`,
    `${signed()}${'— a AAAAAAA=\n'.repeat(100)}`,
  ]
  for (const text of bad) assert.equal(parseCheckpoint(text), null, text)
})

test('finds only the cosignature of the given key in the response of a witness', () => {
  const witness = { name: 'witness.example', publicKey: bytes }
  const witnessKey = { ...witness, type: COSIGNATURE } as const
  const signer = { ...witness, sign: (text: Buffer) => sign(null, text, privateKey) }
  const line = cosign(parsed(signed()), signer, 1_700_000_000_000)
  const stranger = line.replace('witness.example', 'other.example')
  assert.equal(findCosignature(signed(), line, witnessKey), line)
  assert.equal(findCosignature(signed(), `${stranger}${line}${stranger}`, witnessKey), line)
  const older = cosign(
    parsed(signed(`${NAME}\n1\n${BODY.split('\n')[2]}\n`)),
    signer,
    1_700_000_000_000,
  )
  const timeless = cosign(parsed(signed()), signer, 0)
  const bad = ['', '\n', stranger, older, `${line}${older}`, timeless, line.slice(0, -1)]
  bad.push(`${line}garbage\n`, `x\n\n${line}`, `\n${line}`, line.repeat(200))
  for (const text of bad) assert.equal(findCosignature(signed(), text, witnessKey), null, text)
})
