import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createLogger } from '../../platform/logger.ts'
import { markAuthenticated } from './authenticated-connections.ts'
import { createHttpServer } from './http-server.ts'
import { OpenConnections } from './open-connections.ts'
import { REFUSAL_RATE, ResponseThrottle } from './throttle/response-throttle.ts'

const CLIENTS = 4
const PIPELINED = 15
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

/** Listens, and counts the requests to `/queued` that are served in each turn of the event loop. */
async function listen(serve: RequestListener) {
  const turns: number[] = [0]
  let turn = setImmediate(function countTurn() {
    if (turns.at(-1) !== 0) turns.push(0)
    turn = setImmediate(countTurn)
  })
  const logger = createLogger('silent')
  const connections = new OpenConnections({ port: 'api', connectionsMax: 100, logger })
  const server = createHttpServer((request, response) => {
    if (request.url === '/queued') turns.push((turns.pop() ?? 0) + 1)
    serve(request, response)
  }, connections)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const sockets = new Set<Socket>()
  return {
    turns,
    port: address.port,
    /** Sends a request and others that are pipelined, and waits for all responses. */
    pipeline: async () => {
      const socket = connect(address.port, '127.0.0.1')
      sockets.add(socket)
      socket.write(get('/first') + get('/queued').repeat(PIPELINED))
      let received = ''
      for await (const bytes of socket) {
        received += bytes
        if (received.split('HTTP/1.1 200').length > PIPELINED + 1) return
      }
      assert.fail('the server closed the connection')
    },
    [Symbol.asyncDispose]: async () => {
      clearImmediate(turn)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('serves at most two pipelined requests of anonymous callers per turn of the event loop', async () => {
  await using server = await listen((_, response) => response.end('ok'))
  await Promise.all(Array.from({ length: CLIENTS }, async () => await server.pipeline()))
  assert.equal(Math.max(...server.turns), 2)
})

test('serves all pipelined requests of a connection with a key or session in one turn', async () => {
  await using server = await listen((request, response) => {
    // As a guard does.
    if (request.url === '/first') markAuthenticated(request.socket)
    response.end('ok')
  })
  await server.pipeline()
  assert.equal(Math.max(...server.turns), PIPELINED)
})

test('serves queued requests faster as soon as the first request turns out to have a key', async () => {
  const first = Promise.withResolvers<void>()
  let served = 0
  await using server = await listen(({ url, socket }, response) => {
    if (url === '/first') {
      // The key is looked up while the others are queued.
      void first.promise.then(() => {
        markAuthenticated(socket)
        response.end('ok')
      })
      return
    }
    served += 1
    if (served === 2) first.resolve()
    response.end('ok')
  })
  await server.pipeline()
  assert(Math.max(...server.turns) > 2, server.turns.join())
})

test('refuses pipelined requests of an anonymous caller while its response is delayed', async () => {
  using throttle = new ResponseThrottle({ ...REFUSAL_RATE, perSecond: 1 }, () => 0)
  let paths = ''
  await using server = await listen(({ url }, response) => {
    paths += url
    throttle.hold('a network', response, () => response.end('ok'), 5)
    // Ends the delay after the turn in which the next request is due.
    setImmediate(() => setImmediate(() => throttle[Symbol.dispose]()))
  })
  const socket = connect(server.port, '127.0.0.1')
  const last = get('/queued').replace('host: x', 'host: x\r\nconnection: close')
  socket.write(get('/first') + get('/queued') + last)
  const received = await text(socket)
  assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 503'])
  assert.equal(paths, '/first')
})
