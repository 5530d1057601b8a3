import { OperatorError } from '../../errors.ts'

/**
 * Why the embedded engine can't run, as one sentence for the operator. Commands print `message` and exit
 * with 1. `cause` keeps the original error of PostgreSQL or the system.
 */
export class EngineError extends OperatorError {
  override name = 'EngineError'
}

/**
 * Turns a file system error, or one of PostgreSQL about a full disk, into a sentence. Returns any other
 * error unchanged. The sentence names `folder` if the error has no path.
 */
export function explainFileError(folder: string, cause: unknown): unknown {
  const path = pathOf(cause) ?? folder
  switch (isDiskFull(cause) ? 'ENOSPC' : (errorCode(cause) ?? '')) {
    case 'ENOSPC':
      return new EngineError(`The disk of ${path} is full. Free some space and start again.`, {
        cause,
      })
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

/** The path that could not be written. For links and programs, that isn't `path`, which is only read. */
function pathOf(cause: unknown): string | null {
  if (hasText(cause, 'dest')) return cause.dest
  if (hasText(cause, 'syscall') && cause.syscall.startsWith('spawn')) return null
  return hasText(cause, 'path') ? cause.path : null
}

/** The output of a program of PostgreSQL is in the message of the error, or of its cause. */
function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (errorCode(error) === 'EDQUOT') return true
  return /no space left on device/i.test(error.message) || isDiskFull(error.cause)
}

export function errorCode(error: unknown): string | undefined {
  return hasText(error, 'code') ? error.code : undefined
}

function hasText<K extends string>(error: unknown, key: K): error is Error & Record<K, string> {
  return error instanceof Error && typeof Reflect.get(error, key) === 'string'
}
