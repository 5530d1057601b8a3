import { ApiError } from '../../errors.ts'

/** A list of views returns hundreds of queries at once. */
const BYTES_MAX = 4_096

/** Refuses a filter or query that would make lists large. `path` is its path in the request. */
export function refuseLargeFilter(path: string, filter: unknown, bytesMax = BYTES_MAX): void {
  const bytes = Buffer.byteLength(JSON.stringify(filter))
  if (bytes <= bytesMax) return
  const message = `takes ${bytes} bytes as JSON, and the maximum is ${bytesMax}`
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${message}.`,
    details: [{ path, message }],
  })
}
