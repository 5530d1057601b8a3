import type { Socket } from 'node:net'
import { createConnector } from '../../../src/outlet/webhook/send/connector.ts'
import { readRetryAfter } from '../../../src/outlet/webhook/dispatch/retry-schedule.ts'
import {
  Sender,
  type SenderOptions,
  type OutboundRequest,
} from '../../../src/outlet/webhook/send/sender.ts'

/** Opens connections like the service, but resolves every name to loopback. */
export function dialLoopback(options: { ca?: string } = {}): SenderOptions['connect'] {
  return createConnector({
    rules: { mode: 'any', ports: [] },
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    ...options,
  })
}

/** A sender for receivers on loopback, and the sockets that it opened. */
export function startSender(options: Partial<SenderOptions> = {}): {
  sender: Sender
  sockets: Socket[]
} {
  const sockets: Socket[] = []
  const dial = options.connect ?? dialLoopback()
  const sender = new Sender({
    readRetryAfter,
    ...options,
    connect: (target, callback) =>
      dial(target, (...result) => {
        if (result[1]) sockets.push(result[1])
        callback(...result)
      }),
  })
  return { sender, sockets }
}

export const sending = (url: string, headers: Record<string, string> = {}): OutboundRequest => ({
  url,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from('{"id":"é"}'),
})
