import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { linkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../errors.ts'
import { randomHex } from '../id.ts'
import { Secret } from './secret.ts'
import { readSmallFile } from '../small-file.ts'

/**
 * Reads the key of this data folder, and creates it on first use. The key is written to a temporary file
 * and linked into place, so that two programs that start at the same time use the same key, and a crash
 * leaves no incomplete key.
 */
export function readOrCreateSecretKey(dataDir: string): Secret<Buffer> {
  const path = join(dataDir, 'secret.key')
  const draft = `${path}.${randomHex(8)}`
  const found = findSecretKey(dataDir)
  if (found !== null) return found
  // Flush the file: losing the key in a power failure would make every webhook secret unreadable.
  const options = { flag: 'wx', mode: 0o600, flush: true } as const
  writeFileSync(draft, randomBytes(32).toString('base64'), options)
  try {
    linkSync(draft, path)
  } catch {
    // Another program was faster, and its key is used.
  } finally {
    unlinkSync(draft)
  }
  return readSecretKey(path)
}

/** Returns null if this data folder has no key yet. */
export function findSecretKey(dataDir: string): Secret<Buffer> | null {
  try {
    return readSecretKey(join(dataDir, 'secret.key'))
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

function readSecretKey(path: string): Secret<Buffer> {
  const key = parseSecretKey(readSmallFile(path).trim())
  if (key) return key
  throw new OperatorError(
    `${path} is not a secret key: it must be 32 bytes in base64. Restore it from a backup, ` +
      'or delete the file and run annals secret-key accept, which creates a new key.',
  )
}

/** Null unless the text is 32 bytes in base64: a shorter key could be guessed. */
export function parseSecretKey(text: string): Secret<Buffer> | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 32 && bytes.toString('base64') === text ? new Secret(bytes) : null
}

/**
 * Distinguishes two keys without revealing either. Like every use of the secret key, it uses a derived key.
 */
export function fingerprintOf(secretKey: Secret<Buffer>): Buffer {
  const info = 'annals/secret-key-fingerprint'
  const derived = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, 32))
  return createHmac('sha256', derived).update('the secret key of this database').digest()
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
