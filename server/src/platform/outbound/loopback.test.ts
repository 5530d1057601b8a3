import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopback } from './loopback.ts'

for (const hostname of [
  'localhost',
  'LocalHost',
  'localhost.',
  '127.0.0.1',
  '127.0.0.1.',
  '127.255.255.254',
  '::1',
  '[::1]',
]) {
  test(`${hostname} is this machine`, () => {
    assert.equal(isLoopback(hostname), true)
  })
}

for (const hostname of [
  '',
  '.',
  'localhost.example',
  'localhost..',
  'mylocalhost',
  '127.0.0.1.example',
  '127.0.0.256',
  '127.0.0',
  '127.example',
  '1127.0.0.1',
  '128.0.0.1',
  '0.0.0.0',
  '::',
  '[::1',
  '::11',
  '[::1].example',
  'example.com',
]) {
  test(`"${hostname}" is not known to be this machine`, () => {
    assert.equal(isLoopback(hostname), false)
  })
}
