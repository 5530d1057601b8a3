import { isObjectKey, isSignerKey } from '../../platform/object-store/object-key.ts'

export const EVENTS_PART = 'events'
export const TABLES_PART = 'tables'
export const ARCHIVE_PART = 'archive'
export const SIGNER_PART = 'signer'
export const KEY_PART = 'key'
export const MANIFEST = 'manifest.json'

/** Names start with the time of the backup, except those of objects and keys. */
const NAMES = [
  /^events\/\d{8}T\d{9}Z-\d{6,9}\.(?:zst|json)$/,
  /^tables\/\d{8}T\d{9}Z-[a-z0-9_]{1,63}\.zst$/,
  /^signer\/\d{8}T\d{9}Z\.zst$/,
  /^key\/[0-9a-f]{16}$/,
]
const DRAFT = /^(.+)\.[0-9a-f]{16}\.tmp$/

/** Whether a backup can have a file with this path. No other files in its folder are read or deleted. */
export function isBackupName(path: string): boolean {
  if (NAMES.some((pattern) => pattern.test(path))) return true
  if (!path.startsWith(`${ARCHIVE_PART}/`)) return false
  const key = path.slice(ARCHIVE_PART.length + 1)
  return isObjectKey(key) && !isSignerKey(key)
}

/** Whether an interrupted backup can have left this file, which isn't complete. */
export function isDraftName(path: string): boolean {
  const [, name = ''] = DRAFT.exec(path) ?? []
  return name === MANIFEST || isBackupName(name)
}
