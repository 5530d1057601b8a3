import { OperatorError } from '../../errors.ts'

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
        `The data folder can't be used: this user can't write to ${path}. Set ANNALS_DATA_DIR to ` +
          'a folder that it can write to.',
        { cause },
      )
    case 'EROFS':
      return new EngineError(
        `The data folder can't be used: ${path} is on a read-only file system. Set ` +
          'ANNALS_DATA_DIR to a writable folder.',
        { cause },
      )
    case 'ENOTDIR':
    case 'EEXIST':
      return new EngineError(
        `The data folder can't be used: ${path}, or a part of its path, is a file and not a ` +
          'folder. Set ANNALS_DATA_DIR to another folder.',
        { cause },
      )
    default:
      return cause
  }
}

export function diskFullError(path: string, cause: unknown): EngineError {
  return new EngineError(`The disk of ${path} is full. Free some space and start again.`, {
    cause,
  })
}

export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
