import { AnnalsApiError, AnnalsError } from '../../../../sdk/src/client/errors.ts'
import { OperatorError } from '../../errors.ts'
import { printable } from '../../platform/terminal/printable.ts'
import type { ApiTarget } from './target.ts'

/** What a failed call means to the person at the terminal. Returns an error that is a bug of ours unchanged. */
export function explainClientError(error: unknown, { url, apiKey }: ApiTarget): unknown {
  const sentence = sentenceOf(error, url)
  if (sentence === null) return error
  // A server that isn't Annals could send back what it received.
  const safe = printable(apiKey === '' ? sentence : sentence.replaceAll(apiKey, '[key]'))
  return new OperatorError(safe, { cause: error })
}

function sentenceOf(error: unknown, url: string): string | null {
  if (error instanceof AnnalsApiError) return apiSentence(error)
  if (error instanceof AnnalsError) {
    switch (error.code) {
      case 'network_error':
        return `Can't connect to ${url}${reasonOf(error)}. Check that the service runs, and ANNALS_API_URL.`
      case 'timeout':
        return `${url} didn't respond in time. Try again, or check ANNALS_API_URL.`
      default:
        return error.message
    }
  }
  if (!(error instanceof Error) || !('syscall' in error) || !('path' in error)) return null
  const code = 'code' in error ? error.code : null
  if (code === 'ENOENT') return `${String(error.path)} doesn't exist.`
  return `${String(error.path)} can't be used (${typeof code === 'string' ? code : error.message}).`
}

/** A person can't see the header. */
const RETRY_AFTER = / Retry after the delay in the Retry-After header\.$/

function apiSentence(error: AnnalsApiError): string {
  const { status, code, details, traceId, retryAfterMs } = error
  const message = error.message.replaceAll('baseUrl', 'ANNALS_API_URL')
  if (status === 401) return `${message} Check ANNALS_API_KEY.`
  if (code === 'rate_limited' && retryAfterMs !== null) {
    const reason = message.replace(RETRY_AFTER, '')
    return `${reason} Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`
  }
  // Other messages of a 404 say more.
  if (message === 'No such resource.') {
    return "Nothing with this ID exists, or this key can't see it."
  }
  if (details.length > 0) {
    const problems = details.map(({ path, message: problem }) => `${fieldOf(path)} ${problem}`)
    return `The request is not valid: ${problems.join('; ')}.`
  }
  const isOurs = status !== null && status >= 500 && traceId !== null
  return isOurs ? `${message} The trace ID is ${traceId}.` : message
}

/** A JSON pointer as people write it. */
function fieldOf(path: string): string {
  return path.replace(/^\//, '').replaceAll('/', '.') || 'The body'
}

/** The code of the system's error, such as ECONNREFUSED, which is the cause of a cause. */
function reasonOf(error: Error): string {
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    if (!('code' in cause) || typeof cause.code !== 'string') continue
    return cause.code === 'ECONNREFUSED' ? ' (connection refused)' : ` (${cause.code})`
  }
  return ''
}
