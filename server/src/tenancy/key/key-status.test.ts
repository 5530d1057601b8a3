import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyStatusAt } from './key-status.ts'

const NOW_MS = Date.UTC(2026, 5, 15)
const before = new Date(NOW_MS - 1)
const now = new Date(NOW_MS)
const later = new Date(NOW_MS + 1)
const NEVER = { revokedAt: null, graceUntil: null, expiresAt: null }

test('a key works until the millisecond before its end, and revocation takes precedence over expiry', () => {
  const cases = [
    ['ACTIVE', {}],
    ['ACTIVE', { expiresAt: later }],
    ['EXPIRED', { expiresAt: now }],
    ['EXPIRED', { expiresAt: before, graceUntil: later }],
    ['ROTATING', { graceUntil: later }],
    ['ROTATING', { graceUntil: later, expiresAt: later }],
    ['REVOKED', { graceUntil: now }],
    ['REVOKED', { graceUntil: before, expiresAt: before }],
    ['REVOKED', { revokedAt: before }],
    ['REVOKED', { revokedAt: before, expiresAt: before, graceUntil: later }],
  ] as const
  for (const [status, key] of cases) {
    assert.equal(keyStatusAt({ ...NEVER, ...key }, NOW_MS), status, JSON.stringify(key))
  }
})
