import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIP, isIPv6 } from 'node:net'

/** Addresses, of which those of the requested family are sent; an error code; or no answer. */
export type NameAnswer = readonly string[] | 'unknown' | 'broken' | 'silence'

export type NameServer = AsyncDisposable & {
  /** In the format of `Resolver.setServers`. */
  address: string
  /** The questions that arrived, such as `receiver.test A`. */
  questions: readonly string[]
}

const TYPES: Record<number, string> = { 1: 'A', 28: 'AAAA' }
const CODES = { unknown: 3, broken: 2 } as const

/** A DNS server on loopback, over UDP. */
export async function startNameServer(
  answerTo: (name: string, type: string) => NameAnswer,
): Promise<NameServer> {
  const questions: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (message, { port, address }) => {
    const { name, type, end } = readQuestion(message)
    questions.push(`${name} ${type}`)
    const answer = answerTo(name, type)
    if (answer === 'silence') return
    const question = message.subarray(12, end)
    socket.send(reply(message.readUInt16BE(0), question, { answer, type }), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    [Symbol.asyncDispose]: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function readQuestion(message: Buffer): { name: string; type: string; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message.readUInt8(at); length > 0; length = message.readUInt8(at)) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.'), type: TYPES[message.readUInt16BE(at + 1)] ?? '?', end: at + 5 }
}

function reply(
  id: number,
  question: Buffer,
  { answer, type }: { answer: Exclude<NameAnswer, 'silence'>; type: string },
): Buffer {
  const family = type === 'A' ? 4 : 6
  const isCode = typeof answer === 'string'
  const addresses = isCode ? [] : answer.filter((address) => isIP(address) === family)
  const head = Buffer.alloc(12)
  head.writeUInt16BE(id, 0)
  // A response, recursion desired and available.
  head.writeUInt16BE(0x8180 + (isCode ? CODES[answer] : 0), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([head, question, ...addresses.map(record)])
}

/** The name is a pointer to the question, and the time to live is zero. */
function record(address: string): Buffer {
  const bytes = isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number))
  const fixed = Buffer.from([0xc0, 12, 0, isIPv6(address) ? 28 : 1, 0, 1, 0, 0, 0, 0, 0])
  return Buffer.concat([fixed, Buffer.from([bytes.length]), bytes])
}

function ipv6Bytes(address: string): Buffer {
  const [head = '', tail = ''] = address.split('::')
  const groups = (part: string) => part.split(':').filter((group) => group !== '')
  const [before, after] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  const all = [...before, ...zeros, ...after].map((group) => group.padStart(4, '0'))
  return Buffer.from(all.join(''), 'hex')
}
