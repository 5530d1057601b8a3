import { OperatorError } from '../errors.ts'

/**
 * Why the embedded engine can't run, as one sentence for the operator. Commands print `message` and exit
 * with 1. `cause` keeps the original error of PostgreSQL or the system.
 */
export class EngineError extends OperatorError {
  override name = 'EngineError'
}

/** Turns a file system error about `path` into a sentence. Returns any other error unchanged. */
export function explainFileError(path: string, cause: unknown): unknown {
  switch (errorCode(cause) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFullError(path, cause)
    case 'EACCES':
    case 'EPERM':
      return new EngineError(
        `The data folder cannot be used: this user may not write ${path}; set ANNALS_DATA_DIR to ` +
          'a folder of its own.',
        { cause },
      )
    case 'EROFS':
      return new EngineError(
        `The data folder cannot be used: ${path} lies on a read-only file system; set ` +
          'ANNALS_DATA_DIR to a folder that can be written.',
        { cause },
      )
    case 'ENOTDIR':
    case 'EEXIST':
      return new EngineError(
        `The data folder cannot be used: ${path}, or what leads to it, is a file where a folder ` +
          'is needed; set ANNALS_DATA_DIR to another place.',
        { cause },
      )
    default:
      return cause
  }
}

export function diskFullError(path: string, cause: unknown): EngineError {
  return new EngineError(`The disk that holds ${path} is full; make room and start again.`, {
    cause,
  })
}

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
