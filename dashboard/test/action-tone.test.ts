import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDangerous } from '../src/parts/action-tone.ts'

test('actions that destroy, fail or are refused are dangerous, whatever their notation', () => {
  const dangerous = [
    'invoice.deleted',
    'login_failed',
    'login.failed',
    'LOGIN_FAILED',
    'access.denied',
  ]
  for (const action of [...dangerous, 'key:revoked', 'deleted']) assert(isDangerous(action), action)
  const harmless = [
    'invoice.paid',
    'undeleted',
    'deleted.restored',
    'failed_login.reviewed',
    'unlocked',
  ]
  for (const action of harmless) assert(!isDangerous(action), action)
})
