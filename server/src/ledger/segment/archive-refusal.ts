import { ApiError } from '../../errors.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import { SegmentDamagedError, SegmentMissingError } from './segment-reader.ts'

const RESTORE_RETRY_SECONDS = 300
const STORAGE_RETRY_SECONDS = 30
/** An operator has to repair the archive first. */
export const REPAIR_RETRY_SECONDS = 3_600

/** The response to a request that needs segments that are being restored. */
export function archiveRestoring(): ApiError {
  return new ApiError('archive_restoring', { retryAfterSeconds: RESTORE_RETRY_SECONDS })
}

/** The response to a request that needs the archive while its storage fails. */
export function storageUnavailable(cause: StorageError): ApiError {
  return new ApiError('unavailable', {
    message: 'The archive storage is unavailable. Retry after the delay in the Retry-After header.',
    retryAfterSeconds: STORAGE_RETRY_SECONDS,
    cause,
  })
}

/** A `StorageError`, so that storage that hangs causes the same response as storage that fails. */
export function storageTimeout(timeoutMs: number): StorageError {
  return new StorageError(`The archive storage did not respond within ${timeoutMs} ms.`)
}

/** The response to a request that can't read the archive soon, because too many others do. */
export function tooManyArchiveReads(cause: Error): ApiError {
  return new ApiError('overloaded', {
    message:
      'Too many requests are reading archived events. Retry after the delay in the Retry-After header.',
    cause,
  })
}

/** Turns an error of an archive read into an error response. Returns other errors unchanged. */
export function archiveRefusal(error: unknown): unknown {
  if (error instanceof StorageError) return storageUnavailable(error)
  if (!isSegmentFault(error)) return error
  return new ApiError('unavailable', {
    message:
      'A file of the archive is missing or damaged. Ask the operator of this service to repair the archive.',
    retryAfterSeconds: REPAIR_RETRY_SECONDS,
    cause: error,
  })
}

/** Whether the error means that a file is missing or damaged. */
export function isSegmentFault(error: unknown): error is Error {
  return error instanceof SegmentMissingError || error instanceof SegmentDamagedError
}
