import assert from 'node:assert/strict'
import { StorageError } from './storage-error.ts'

/** Turns an error of the SDK into a sentence. Returns a bug of ours unchanged. */
export function explainS3Error(error: unknown, url: string): unknown {
  if (error instanceof StorageError || error instanceof assert.AssertionError) return error
  const answer = responseOf(error)
  if (answer === null) return explainNoResponse(error, url)
  const { name, status, requestId } = answer
  return new StorageError(messageForStatus(name, status, url), {
    cause: new Error(`${status} ${name}, request ${requestId || 'without an id'}`),
    isCold: name === 'InvalidObjectState',
    isDenied: status === 403 && name !== 'InvalidObjectState',
  })
}

/** The server's response without its text, which may repeat the access key or the signed data. */
export function responseOf(
  error: unknown,
): { name: string; status: number; requestId: string } | null {
  if (!(error instanceof Error) || !('$metadata' in error)) return null
  const { $metadata: metadata } = error
  if (typeof metadata !== 'object' || metadata === null) return null
  const status = 'httpStatusCode' in metadata ? metadata.httpStatusCode : undefined
  if (typeof status !== 'number') return null
  const requestId = 'requestId' in metadata ? metadata.requestId : ''
  return {
    status,
    name: /^[A-Za-z]{1,64}$/.test(error.name) ? error.name : 'Unknown',
    requestId: typeof requestId === 'string' && /^[\w-]{1,64}$/.test(requestId) ? requestId : '',
  }
}

export function messageForStatus(name: string, status: number, url: string): string {
  if (name === 'InvalidObjectState')
    return `An object of ${url} is in a cold storage class. Restore it first.`
  if (name === 'NoSuchBucket') return `The bucket of ${url} does not exist. Create it.`
  if (status === 401 || status === 403) {
    return `${url} denied access (${name}). Check the credentials and their permissions.`
  }
  if (status === 301 || status === 307 || name === 'AuthorizationHeaderMalformed') {
    return `${url} is in another region (${name}). Check AWS_REGION.`
  }
  if (status >= 500 || status === 429)
    return `${url} is temporarily unavailable (${status} ${name}).`
  return `${url} sent an unexpected response (${status} ${name}).`
}

function explainNoResponse(cause: unknown, url: string): unknown {
  // A bug of ours is not the storage's fault.
  if (!(cause instanceof Error) || cause instanceof TypeError) return cause
  if (cause.name === 'CredentialsProviderError') {
    return new StorageError(
      `There are no credentials for ${url}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
      { cause },
    )
  }
  if (cause.message.includes('Region is missing')) {
    return new StorageError(`There is no region for ${url}. Set AWS_REGION.`, { cause })
  }
  if (cause.name === 'TimeoutError') {
    return new StorageError(`${url} did not respond in time.`, { cause })
  }
  const code = 'code' in cause && typeof cause.code === 'string' ? ` (${cause.code})` : ''
  return new StorageError(`${url} can't be reached${code}.`, { cause })
}
