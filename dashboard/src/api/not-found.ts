import { ApiError } from './client.ts'

/** True if the resource doesn't exist or the member may not see it. The service doesn't reveal which. */
export function isNotFound(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404
}
