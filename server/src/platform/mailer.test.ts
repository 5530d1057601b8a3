import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { tryMail } from './mailer.ts'
import { Secret } from './secret/secret.ts'

const DRIP_MS = 20
const MAIL_MS_MAX = 500

test('a mail server that sends its reply line by line without an end is cut off', async () => {
  const { promise: cutOff, resolve } = Promise.withResolvers<void>()
  const server = createServer((socket) => {
    const drip = setInterval(() => socket.write('250-x\r\n'), DRIP_MS)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearInterval(drip)
      resolve()
    })
    socket.write('220 mail.example\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  await using _closed = { [Symbol.asyncDispose]: async () => void server.close() }
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const url = new Secret(`smtp://127.0.0.1:${address.port}`)
  const mail = { to: 'a@customer.example', subject: 'A subject', text: 'A text' }
  const signal = AbortSignal.timeout(10_000)
  const outcome = await tryMail(url, mail, signal, { mailMsMax: MAIL_MS_MAX })
  assert.deepEqual(outcome, {
    kind: 'refused',
    isTemporary: true,
    isAboutMail: false,
    reason: { code: 'ETIMEDOUT' },
  })
  await cutOff
})
