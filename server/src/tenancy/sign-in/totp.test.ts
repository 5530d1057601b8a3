import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptedStep, base32, otpauthUri, totpCode } from './totp.ts'

/** The secret of the test vectors in RFC 6238, appendix B. */
const SECRET = Buffer.from('12345678901234567890')
const NONE_USED = 0

/** Seconds and code. The RFC prints eight digits, and six digits are the last six of them. */
const VECTORS = [
  [59, '94287082'],
  [1_111_111_109, '07081804'],
  [1_111_111_111, '14050471'],
  [1_234_567_890, '89005924'],
  [2_000_000_000, '69279037'],
  [20_000_000_000, '65353130'],
] as const

test('computes the codes of RFC 6238', () => {
  for (const [seconds, code] of VECTORS) {
    assert.equal(totpCode(SECRET, seconds * 1_000), code.slice(-6), `${seconds} s`)
  }
})

test('accepts the code of the current step, the one before and the one after, and no others', () => {
  const nowMs = 1_111_111_111_000
  const step = Math.floor(nowMs / 30_000)
  const accepted = [-3, -2, -1, 0, 1, 2, 3].map((skew) =>
    acceptedStep(SECRET, totpCode(SECRET, nowMs + skew * 30_000), { nowMs, usedStep: NONE_USED }),
  )
  assert.deepEqual(accepted, [null, null, step - 1, step, step + 1, null, null])
})

test('accepts no code of a step that was used, or of one before it', () => {
  const nowMs = 1_111_111_111_000
  const step = Math.floor(nowMs / 30_000)
  const accept = (skew: number, usedStep: number) =>
    acceptedStep(SECRET, totpCode(SECRET, nowMs + skew * 30_000), { nowMs, usedStep })
  assert.equal(accept(0, step - 1), step)
  assert.equal(accept(0, step), null)
  assert.equal(accept(-1, step), null)
  assert.equal(accept(1, step), step + 1)
  assert.equal(accept(1, step + 1), null)
})

test('accepts no other text', () => {
  const nowMs = 59_000
  for (const code of [
    '',
    '287083',
    '28708',
    '2870822',
    '94287082',
    'x87082',
    '２87082',
    ' 287082',
  ]) {
    assert.equal(acceptedStep(SECRET, code, { nowMs, usedStep: NONE_USED }), null, code)
  }
  assert.equal(acceptedStep(SECRET, '287082', { nowMs, usedStep: NONE_USED }), 1)
})

/** RFC 4648, section 10, without padding. */
const BASE32_VECTORS = [
  ['', ''],
  ['f', 'MY'],
  ['fo', 'MZXQ'],
  ['foo', 'MZXW6'],
  ['foob', 'MZXW6YQ'],
  ['fooba', 'MZXW6YTB'],
  ['foobar', 'MZXW6YTBOI'],
] as const

test('encodes base32 as RFC 4648 does', () => {
  for (const [text, encoded] of BASE32_VECTORS) assert.equal(base32(Buffer.from(text)), encoded)
  assert.equal(base32(Buffer.alloc(20, 0xff)), '7'.repeat(32))
})

test('the address for the app names the account and contains the secret', () => {
  const uri = new URL(otpauthUri({ email: 'a+b&c@example.com', secret: SECRET }))
  assert.equal(uri.protocol, 'otpauth:')
  assert.equal(decodeURIComponent(uri.pathname.split('/').at(-1) ?? ''), 'Annals:a+b&c@example.com')
  assert.equal(uri.searchParams.get('secret'), base32(SECRET))
  assert.equal(uri.searchParams.get('issuer'), 'Annals')
})
