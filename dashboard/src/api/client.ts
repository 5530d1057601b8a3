import createClient from 'openapi-fetch'
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

export const client = createClient<paths>({ baseUrl: '/' })

type ApiResult<T> = { data?: T | undefined; error?: unknown; response: Response }

/** Returns the body of a response, or throws an error that pages can show. */
export async function unwrap<T>(call: Promise<ApiResult<T>>): Promise<T> {
  let result: ApiResult<T>
  try {
    result = await call
  } catch {
    throw new ApiError(0, undefined)
  }
  const { data, error, response } = result
  if (!response.ok) throw new ApiError(response.status, readError(error))
  return data as T // A 204 response has no body, and T is then undefined.
}

function readError(error: unknown): ErrorBody | undefined {
  const isBody = typeof error === 'object' && error !== null && 'error' in error && 'code' in error
  return isBody ? (error as ErrorBody) : undefined // Every error response has this shape.
}
