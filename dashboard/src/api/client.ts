import createClient from 'openapi-fetch'
import { parseJson } from '../../../sdk/src/client/parse-json.ts'
import { noteFailure, noteResponse, watchRequest } from './connection.ts'
import { noteDrift } from './schema-drift.ts'
import type { paths } from './schema.d.ts'

/** An error response of the service, or a failure to reach it (status 0). */
export class ApiError extends Error {
  override name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly traceId: string | null
  readonly details: readonly { path: string; message: string }[]

  constructor(status: number, body: ErrorBody | undefined) {
    super(body?.error ?? 'The service didn’t respond. Check that it is running, then try again.')
    this.status = status
    this.code = body?.code ?? 'unreachable'
    this.traceId = body?.traceId ?? null
    this.details = body?.details ?? []
  }
}

type ErrorBody = {
  error: string
  code: string
  traceId: string
  details?: { path: string; message: string }[]
}

export const client = createClient<paths>({ baseUrl: '/', fetch: fetchAsString })

/** openapi-fetch uses `JSON.parse`, so it gets the body as one JSON string, and `parseBody` parses its text. */
async function fetchAsString(request: Request): Promise<Response> {
  const response = await fetch(request)
  const text = await response.text()
  return new Response(text === '' ? null : JSON.stringify(text), response)
}

function parseBody(text: unknown) {
  return typeof text === 'string' ? parseJson(text) : undefined
}

type ApiResult<T> = { data?: T | undefined; error?: unknown; response: Response }

/** Returns the body of a response, or throws an error that pages can show. */
export async function unwrap<T>(call: Promise<ApiResult<T>>): Promise<T> {
  let result: ApiResult<T>
  let data: T
  try {
    result = await watchRequest(call)
    data = parseBody(result.data)
  } catch (error) {
    if (!isAborted(error)) noteFailure()
    throw new ApiError(0, undefined)
  }
  const { error, response } = result
  const refusal = response.ok ? undefined : readError(error)
  // A proxy responds in place of a service that it can't reach.
  if (response.status >= 500 && refusal === undefined) noteFailure()
  else noteResponse()
  if (!response.ok) throw new ApiError(response.status, refusal)
  noteDrift(data, response.headers.get('x-service-schema-drift'))
  return data // A 204 response has no body, and T is then undefined.
}

/** The page canceled the request itself. */
function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}

function readError(text: unknown): ErrorBody | undefined {
  try {
    const error: unknown = parseBody(text)
    const isBody =
      typeof error === 'object' && error !== null && 'error' in error && 'code' in error
    return isBody ? (error as ErrorBody) : undefined // Every error response has this shape.
  } catch {
    return undefined // A proxy’s page.
  }
}
