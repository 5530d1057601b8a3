import type { Recorder } from '../recorder/recorder.ts'
import { type RecordOptions, recordRequest } from './record-request.ts'
import { type OnDelivery, type ReceiveOptions, receiveWebhook } from './receive-webhook.ts'

/** What this module uses of a Fastify request. */
type FastifyRequest = {
  method: string
  url: string
  routeOptions: { url?: string | undefined }
  ip: string
  headers: Record<string, string | string[] | undefined>
  body: unknown
}

/** What this module uses of a Fastify reply. */
type FastifyReply = {
  statusCode: number
  elapsedTime: number
  code(status: number): { send(body: object): unknown }
}

/** What this module uses of a Fastify instance. */
type FastifyInstance<Request, Reply> = {
  addHook(
    name: 'onResponse',
    hook: (request: Request, reply: Reply, done: () => void) => void,
  ): unknown
}

/** What this module uses of a Fastify instance to receive webhooks. */
type FastifyReceiver = {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    type: string,
    options: { parseAs: 'buffer' },
    parse: (
      request: unknown,
      body: Buffer,
      done: (error: Error | null, body: Buffer) => void,
    ) => void,
  ): unknown
  post(
    path: string,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): unknown
}

/**
 * Records the requests that change something, once they are answered.
 *
 * ```ts
 * recordFastify(app, recorder, { actor: (request) => ({ id: request.user.id }) })
 * ```
 */
export function recordFastify<
  Request extends FastifyRequest = FastifyRequest,
  Reply extends FastifyReply = FastifyReply,
>(
  app: FastifyInstance<Request, Reply>,
  recorder: Pick<Recorder, 'record'>,
  options: RecordOptions<Request> = {},
): void {
  app.addHook('onResponse', (request, reply, done) => {
    const userAgent = request.headers['user-agent']
    const info = {
      method: request.method,
      url: request.url,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      ip: request.ip,
      userAgent: typeof userAgent === 'string' ? userAgent : null,
    }
    recordRequest(recorder, request, info, options)
    done()
  })
}

/**
 * A plugin with a route that receives webhooks. Its bodies stay bytes; other routes aren't affected.
 *
 * ```ts
 * app.register(receiveFastify('/annals', secret, async ({ event }) => { … }))
 * ```
 */
export function receiveFastify(
  path: string,
  secret: string | readonly string[],
  onDelivery: OnDelivery,
  options: ReceiveOptions = {},
) {
  return async (app: FastifyReceiver): Promise<void> => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.post(path, async ({ headers, body: bytes }, reply) => {
      const received = { headers, body: bytes instanceof Uint8Array ? bytes : null }
      const { status, body } = await receiveWebhook(received, secret, onDelivery, options)
      return reply.code(status).send(body)
    })
  }
}
