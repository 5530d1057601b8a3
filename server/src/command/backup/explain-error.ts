import { OperatorError } from '../../errors.ts'
import { OPEN_FOLDERS } from '../../outlet/backup/backup-folder.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'

/** Explains an error of the backup's folder or of the archive to the operator. Returns any other error unchanged. */
export function explainBackupError(error: unknown, folder: string): unknown {
  if (error instanceof StorageError) return new OperatorError(error.message, { cause: error })
  if (!(error instanceof Error) || !('code' in error) || !('syscall' in error)) return error
  const path = 'path' in error && typeof error.path === 'string' ? error.path : folder
  if (!path.startsWith(folder) && !path.startsWith(OPEN_FOLDERS)) return error
  return new OperatorError(reasonOf(error.code, folder), { cause: error })
}

function reasonOf(code: unknown, folder: string): string {
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return `The disk of ${folder} is full. Free some space, and run the command again.`
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return `This user can't access ${folder}. Check the permissions of the folder.`
    default:
      return `The folder ${folder} can't be used (${String(code)}).`
  }
}
