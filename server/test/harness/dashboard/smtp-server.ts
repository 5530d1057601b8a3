import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export type ReceivedMail = { from: string; to: string[]; data: string }

/** A command after which the server closes the connection without a reply. */
type CutCommand = 'EHLO' | 'MAIL' | 'RCPT' | 'DATA'
type MailReply = (mailNumber: number) => 'accept' | 'later' | 'cut'

type Behavior = {
  refuses: boolean
  cutsAt: CutCommand | undefined
  offersTls: boolean
  replyTo: MailReply
}

export type SmtpServer = AsyncDisposable & {
  url: string
  /** The mails that arrived completely, in order. */
  mails: readonly ReceivedMail[]
  /** The number of connections so far. */
  readonly connections: number
}

/**
 * A mail server on loopback that accepts everything. With `refuses`, it rejects everything; with
 * `hangs`, it never responds; with `cutsAt`, it closes the connection at that command; with `offersTls`, it
 * offers STARTTLS but can't do it. `replyTo` decides about a mail after all of it has arrived, by its number from 1:
 * `later` is a temporary refusal, and `cut` closes the connection without a reply.
 */
export async function startSmtpServer({
  refuses = false,
  hangs = false,
  cutsAt,
  offersTls = false,
  replyTo = () => 'accept',
}: Partial<Behavior & { hangs: boolean }> = {}): Promise<SmtpServer> {
  const mails: ReceivedMail[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    if (!hangs) void converse(socket, { refuses, cutsAt, offersTls, replyTo, mails })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return {
    url: `smtp://127.0.0.1:${port}?from=annals@example.com`,
    mails,
    get connections() {
      return sockets.size
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function converse(
  socket: Socket,
  { refuses, cutsAt, offersTls, replyTo, mails }: Behavior & { mails: ReceivedMail[] },
): Promise<void> {
  const say = (line: string) => void socket.write(`${line}\r\n`)
  let mail: ReceivedMail = { from: '', to: [], data: '' }
  let isData = false
  say('220 test')
  for await (const line of createInterface({ input: socket, crlfDelay: Infinity })) {
    const command = isData ? '' : line.slice(0, 4).toUpperCase()
    if (command === cutsAt) {
      socket.destroy()
      return
    }
    if (isData && line === '.') {
      isData = false
      mails.push(mail)
      mail = { from: '', to: [], data: '' }
      const reply = replyTo(mails.length)
      if (reply === 'cut') socket.destroy()
      else say(reply === 'later' ? '451 try again later' : '250 taken')
    } else if (isData) mail.data += `${line.replace(/^\./, '')}\n`
    else if (command === 'EHLO' && offersTls) {
      say('250-test')
      say('250 STARTTLS')
    } else if (command === 'STAR') {
      say('220 go on')
      say('this is not TLS')
      return
    } else if (command === 'MAIL') {
      mail.from = /<(.*)>/.exec(line)?.[1] ?? ''
      say('250 ok')
    } else if (command === 'RCPT') {
      mail.to.push(/<(.*)>/.exec(line)?.[1] ?? '')
      say(refuses ? '550 nobody here' : '250 ok')
    } else if (command === 'DATA') {
      isData = true
      say('354 go on')
    } else if (command === 'QUIT') {
      say('221 bye')
      socket.end()
    } else say('250 ok')
  }
}
