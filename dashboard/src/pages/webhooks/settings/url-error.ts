import { ApiError } from '../../../api/client.ts'

/** The error message for the URL field. Null if the error isn't about the URL. */
export function urlError(error: Error | null): string | null {
  if (!(error instanceof ApiError)) return null
  const message = error.details.find(({ path }) => path === '/url')?.message
  if (message === undefined) return null
  if (message === 'must be https') {
    return 'The URL must start with https://, unless the service runs with ANNALS_WEBHOOK_DESTINATIONS=any.'
  }
  return `The URL ${message}.`
}
