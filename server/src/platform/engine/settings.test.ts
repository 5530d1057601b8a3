import assert from 'node:assert/strict'
import { test } from 'node:test'

import { engineArguments, engineSettings, sharedBuffersMib } from './settings.ts'

const GIB = 1024 ** 3

test('shared buffers scale with the memory, within limits', () => {
  assert.equal(sharedBuffersMib(0.25 * GIB), 128)
  assert.equal(sharedBuffersMib(2 * GIB), 256)
  assert.equal(sharedBuffersMib(256 * GIB), 512)
})

test('each setting can be overridden, and the defaults are durable and quiet', () => {
  const settings = engineSettings(4 * GIB, { max_connections: '20' })
  assert.equal(settings['max_connections'], '20')
  assert.equal(settings['fsync'], 'on')
  assert.equal(settings['synchronous_commit'], 'on')
  assert.equal(settings['listen_addresses'], '')
})

test('the data folder is the first argument, which identifies a running engine', () => {
  assert.deepEqual(engineArguments('/data/cluster', { jit: 'off' }), [
    '-D',
    '/data/cluster',
    '-c',
    'jit=off',
  ])
})
