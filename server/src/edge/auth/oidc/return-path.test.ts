import assert from 'node:assert/strict'
import { test } from 'node:test'
import { returnPathOf } from './return-path.ts'

test('sign-in returns to a page of the dashboard with its parameters', () => {
  assert.equal(returnPathOf('/app/explorer?range=7d&q=a%20b'), '/app/explorer?range=7d&q=a%20b')
  assert.equal(returnPathOf('/app'), '/app')
  assert.equal(returnPathOf('/app/../app/keys'), '/app/keys')
  for (const path of [undefined, '/']) assert.equal(returnPathOf(path), '/app/explorer')
})

test('sign-in never returns to another site or to a path outside the dashboard', () => {
  const hostile = [
    'https://evil.example/app/explorer',
    '//evil.example/app/explorer',
    '/\\evil.example/app/explorer',
    '/\t/evil.example/app',
    '\\/evil.example',
    'javascript:alert(1)//app/',
    'app/explorer',
    '',
    '/app/../dashboard/session',
    '/app/%2e%2e/v1/events',
    '/application',
    '/dashboard/session',
    '/app/..//evil.example',
  ]
  for (const path of hostile) assert.equal(returnPathOf(path), null, path)
})
