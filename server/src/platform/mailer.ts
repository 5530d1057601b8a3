import { Socket } from 'node:net'
import { BackgroundQueue } from './scheduling/background-queue.ts'
import { untilAborted } from './time/deadline.ts'
import type { Logger } from './logger.ts'
import type { Secret } from './secret/secret.ts'

export type Mail = { to: string; subject: string; text: string }

export type MailOutcome =
  | { kind: 'sent' }
  | {
      kind: 'refused'
      isTemporary: boolean
      /** Whether the server refused this mail or its recipient. Otherwise other mails would fail too. */
      isAboutMail: boolean
      reason: object
    }
  | { kind: 'unknown'; reason: object }

const MAILS_WAITING_MAX = 1_000
const CONNECT_MS_MAX = 10_000
/** The maximum time without a response from the mail server. */
const SILENCE_MS_MAX = 20_000
/** For one mail. A server that sends its reply line by line is never silent. */
const MAIL_MS_MAX = 60_000
/** Replies from 400 on refuse the mail, those from 500 on for good (RFC 5321). */
const REFUSED_CODE_MIN = 400
const PERMANENT_CODE_MIN = 500
/** The server is shutting down, or limits this client. */
const UNAVAILABLE_CODE = 421
const MAIL_COMMANDS: readonly unknown[] = ['RCPT TO', 'DATA']

/**
 * Sends mail through the operator's mail server. Callers don't wait for it: they get the same response,
 * just as fast, if the server is slow, down or not configured. When `cutSignal` aborts, the mail that is
 * being sent fails, so that a hanging server doesn't delay the shutdown.
 */
export class Mailer implements AsyncDisposable {
  readonly isConfigured: boolean
  readonly #logger: Logger
  readonly #queue: BackgroundQueue<Mail>

  constructor({
    smtpUrl,
    logger,
    cutSignal,
  }: {
    smtpUrl: Secret<string> | null
    logger: Logger
    cutSignal: AbortSignal
  }) {
    this.isConfigured = smtpUrl !== null
    this.#logger = logger
    this.#queue = new BackgroundQueue({
      name: 'mail',
      waitingMax: MAILS_WAITING_MAX,
      logger,
      run: async (mail) => {
        if (smtpUrl === null) return
        await deliver(smtpUrl.reveal(), mail, cutSignal).catch((error: unknown) => {
          // The server's message contains the recipient, so log only these fields.
          logger.error({ event: 'mail.failed', ...reasonOf(error) })
        })
      },
    })
  }

  /** Queues the mail. If it can't be sent, that is logged without its text. */
  sendMail(mail: Mail): void {
    if (!this.isConfigured) return
    if (!this.#queue.push(mail)) this.#logger.warn({ event: 'mail.dropped' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue[Symbol.asyncDispose]()
  }
}

/**
 * Sends one mail now. The outcome is a value: `refused` if the server certainly doesn't deliver it, and `unknown`
 * if the connection failed after the whole mail was sent, because the server may have accepted it.
 */
export async function tryMail(
  smtpUrl: Secret<string>,
  mail: Mail,
  signal: AbortSignal,
  { mailMsMax = MAIL_MS_MAX }: { mailMsMax?: number } = {},
): Promise<MailOutcome> {
  let isAllSent = false
  const onAllSent = () => {
    isAllSent = true
  }
  try {
    await deliver(smtpUrl.reveal(), mail, signal, { onAllSent, mailMsMax })
    return { kind: 'sent' }
  } catch (error) {
    const reason = reasonOf(error)
    const code = Number(reason['responseCode'] ?? 0)
    const isAboutMail = MAIL_COMMANDS.includes(reason['command']) && code !== UNAVAILABLE_CODE
    if (code >= REFUSED_CODE_MIN) {
      return { kind: 'refused', isTemporary: code < PERMANENT_CODE_MIN, isAboutMail, reason }
    }
    if (isAllSent) return { kind: 'unknown', reason }
    return { kind: 'refused', isTemporary: true, isAboutMail: false, reason }
  }
}

async function deliver(
  smtpUrl: string,
  { to, subject, text }: Mail,
  signal: AbortSignal,
  { onAllSent = () => {}, mailMsMax = MAIL_MS_MAX } = {},
): Promise<void> {
  // Most services send no mail, so the package is loaded on first use.
  const { createTransport } = await import('nodemailer')
  // We create the socket ourselves, because closing the transport doesn't close its connection.
  const socket = new Socket()
  const { url, from } = splitSender(smtpUrl)
  const transport = createTransport({
    url,
    socket,
    connectionTimeout: CONNECT_MS_MAX,
    greetingTimeout: CONNECT_MS_MAX,
    socketTimeout: SILENCE_MS_MAX,
    disableFileAccess: true,
    disableUrlAccess: true,
    logger: {
      // Only nodemailer's log says when the last line of a mail was written.
      info: (entry: unknown) => {
        if (isOfMessage(entry)) onAllSent()
      },
    },
  })
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(lateError()), mailMsMax)
  const ended = AbortSignal.any([signal, late.signal])
  try {
    // As an object, the address is always a single address, even if it contains commas.
    const mail = { from, to: { name: '', address: to }, subject, text }
    await untilAborted(transport.sendMail(mail), ended)
  } finally {
    clearTimeout(timer)
    if (ended.aborted) socket.destroy()
    transport.close()
  }
}

/** With the code that nodemailer gives to a server that is silent. */
function lateError(): Error {
  return Object.assign(new Error('The mail took too long.'), { code: 'ETIMEDOUT' })
}

function isOfMessage(entry: unknown): boolean {
  return typeof entry === 'object' && entry !== null && 'tnx' in entry && entry.tnx === 'message'
}

const REASON_PARTS: readonly string[] = ['code', 'command', 'responseCode']

/** The reason as nodemailer reports it: `{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550 }`. */
function reasonOf(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return {}
  const parts = Object.entries(error)
  return Object.fromEntries(parts.filter(([name]) => REASON_PARTS.includes(name)))
}

/**
 * Splits `smtp://user:password@host:587?from=annals@example.com`. Without `from`, the sender is
 * annals@<mail server>.
 */
function splitSender(smtpUrl: string): { url: string; from: string } {
  const url = new URL(smtpUrl)
  const from = url.searchParams.get('from') ?? `annals@${url.hostname}`
  url.searchParams.delete('from')
  return { url: url.href, from }
}
