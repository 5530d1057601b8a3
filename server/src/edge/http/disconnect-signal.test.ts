import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { disconnectSignal } from './disconnect-signal.ts'

const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()))

test('aborts when the client disconnects', () => {
  const raw = newResponse()
  const signal = disconnectSignal({ raw })
  assert.equal(signal.aborted, false)
  raw.emit('close')
  assert.equal(signal.aborted, true)
})

test('is already aborted if the client disconnected before', () => {
  const raw = newResponse()
  raw.destroy()
  raw.emit('close')
  assert.equal(disconnectSignal({ raw }).aborted, true)
})
