import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Type } from 'typebox'
import { ApiError } from '../../errors.ts'
import { IdempotencyKey } from '../schema/event.ts'
import { createParser } from '../validate.ts'

const NAME = 'Idempotency-Key'
const LOWER_CASE_NAME = 'idempotency-key'

/** For the OpenAPI document. Fastify doesn't validate it, because the value must be decoded first. */
export const IdempotencyHeader = Type.Object({
  [NAME]: Type.Optional({
    ...IdempotencyKey,
    description:
      'The same as `idempotencyKey` in the body, encoded as UTF-8. If you send both, they must be equal.',
  }),
})

const parseHeader = createParser(Type.Object({ [NAME]: IdempotencyKey }), 'headers')

/** Adds the key from the `Idempotency-Key` header to the event. A key in the body must be the same. */
export function withHeaderKey<T extends { idempotencyKey?: string }>(
  event: T,
  request: IncomingMessage,
): T {
  const idempotencyKey = readHeader(request)
  if (idempotencyKey === null || idempotencyKey === event.idempotencyKey) return event
  if (event.idempotencyKey === undefined) return { ...event, idempotencyKey }
  throw new ApiError('invalid_request', {
    message: `The ${NAME} header and idempotencyKey in the body are different. Send only one of them.`,
    details: [
      { path: NAME, message: 'must equal /idempotencyKey in the body' },
      { path: '/idempotencyKey', message: `must equal the ${NAME} header` },
    ],
  })
}

/** For batches: if the header were ignored, the caller could retry and store every event twice. */
export function refuseHeaderKey(request: IncomingMessage): void {
  if (request.headers[LOWER_CASE_NAME] === undefined) return
  throw new ApiError('invalid_request', {
    message: `A batch can't have an ${NAME} header. Set idempotencyKey in each event instead.`,
    details: [{ path: NAME, message: 'is not allowed for a batch' }],
  })
}

function readHeader({ headers, rawHeaders }: IncomingMessage): string | null {
  const value = headers[LOWER_CASE_NAME]
  if (value === undefined) return null
  // Node joins repeated headers with a comma, which can also be part of a key.
  const names = rawHeaders.filter((_, index) => index % 2 === 0)
  if (names.filter((name) => name.toLowerCase() === LOWER_CASE_NAME).length > 1) {
    throw invalidHeaderError('must appear only once')
  }
  // Node decodes headers as Latin-1.
  const bytes = Buffer.from(String(value), 'latin1')
  if (!isUtf8(bytes)) throw invalidHeaderError('must be valid UTF-8')
  const parsed = parseHeader({ [NAME]: bytes.toString('utf8') })
  if (parsed instanceof ApiError) throw parsed
  return parsed[NAME]
}

function invalidHeaderError(message: string): ApiError {
  return new ApiError('invalid_request', {
    message: `The ${NAME} header ${message}.`,
    details: [{ path: NAME, message }],
  })
}
