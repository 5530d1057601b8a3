import assert from 'node:assert/strict'
import { totpCode } from '../../../src/tenancy/sign-in/totp.ts'
import type { Member } from '../dashboard/dashboard.ts'
import type { TestApp, TestResponse } from '../app/start-app.ts'

/** A member's authenticator app, and the recovery codes that they wrote down. */
export type Authenticator = {
  secret: Buffer
  codeAt: (nowMs: number) => string
  recoveryCodes: readonly string[]
}

/** Turns on the second factor of a signed-in member, with a code of this time. */
export async function enableFactor(
  call: Member['call'],
  { password, nowMs }: { password: string; nowMs: number },
): Promise<Authenticator> {
  const started = await call('POST', '/dashboard/second-factor', {
    body: { currentPassword: password },
  })
  assert.equal(started.status, 201, started.text)
  const secret = fromBase32(started.json.secret)
  const codeAt = (atMs: number) => totpCode(secret, atMs)
  const confirmed = await call('POST', '/dashboard/second-factor/confirm', {
    body: { code: codeAt(nowMs) },
  })
  assert.equal(confirmed.status, 200, confirmed.text)
  return { secret, codeAt, recoveryCodes: confirmed.json.recoveryCodes }
}

/** Sends the form of the second step like a browser. */
export async function enterCode(
  app: TestApp,
  body: { challenge: string; code: string },
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  return await app.call('POST', '/dashboard/session/second-factor', {
    body,
    headers: { 'sec-fetch-site': 'same-origin', ...headers },
  })
}

export function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (character) =>
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(character).toString(2).padStart(5, '0'),
  ).join('')
  const bytes = bits.match(/.{8}/g) ?? []
  return Buffer.from(bytes.map((byte) => Number.parseInt(byte, 2)))
}
