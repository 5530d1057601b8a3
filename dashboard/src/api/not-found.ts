import { ApiError } from './client.ts'

/** It is not there, or not for whoever asks: the service does not say which. */
export function isNotFound(error: Error | null): boolean {
  return error instanceof ApiError && error.status === 404
}
