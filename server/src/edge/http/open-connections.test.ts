import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { createLogger } from '../../platform/logger.ts'
import { OpenConnections } from './open-connections.ts'

const newConnections = (connectionsMax: number) =>
  new OpenConnections({ port: 'api', connectionsMax, logger: createLogger('silent') })

/** A request whose body has not arrived. */
const newResponse = () => new ServerResponse(new IncomingMessage(new Socket()))

/** A connection with one request. */
function addBusy(connections: OpenConnections): {
  socket: Socket
  inFlight: Set<ServerResponse>
  response: ServerResponse
} {
  const socket = new Socket()
  const response = newResponse()
  const inFlight = new Set([response])
  connections.add(socket)
  connections.markBusy(socket, inFlight)
  return { socket, inFlight, response }
}

test('finds a connection to close even if its group has changed since the last check', () => {
  const connections = newConnections(4)
  const [first, second, third] = [1, 2, 3].map(() => addBusy(connections))
  const reader = addBusy(connections)
  assert(first && second && third)
  reader.response.req.complete = true
  reader.response.writeHead(200)
  reader.response.write('unread')
  // At the limit, all connections are checked: three are receiving, and one waits for its reader.
  const fourth = addBusy(connections)
  assert.equal(first.socket.destroyed, true)

  // The receiving ones are complete now, and the reader has begun to send another body.
  for (const { response } of [second, third, fourth]) response.req.complete = true
  reader.inFlight.clear()
  reader.inFlight.add(newResponse())
  connections.add(new Socket())
  assert.equal(connections.dropped, 0)
  assert.equal(reader.socket.destroyed, true)
})
