import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { linkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../errors.ts'
import { Secret } from './secret.ts'
import { readSmallFile } from './small-file.ts'

/**
 * The key of this data folder, made on first use. It is written aside and linked into place, so
 * that two programs that start at once agree on one and a crash leaves none half-written.
 */
export function readOrMakeSecretKey(dataDir: string): Secret<Buffer> {
  const path = join(dataDir, 'secret.key')
  const draft = `${path}.${process.pid}`
  try {
    return readSecretKey(path)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  // Flushed: a key that is lost in a power cut takes every webhook secret with it.
  writeFileSync(draft, randomBytes(32).toString('base64'), { mode: 0o600, flush: true })
  try {
    linkSync(draft, path)
  } catch {
    // Another program was first; its key is the one.
  } finally {
    unlinkSync(draft)
  }
  return readSecretKey(path)
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
 * Tells two keys apart without revealing either. Made with a derived key, as everything that the secret
 * key is used for.
 */
export function fingerprintOf(secretKey: Secret<Buffer>): Buffer {
  const info = 'annals/secret-key-fingerprint'
  const derived = Buffer.from(hkdfSync('sha256', secretKey.reveal(), '', info, 32))
  return createHmac('sha256', derived).update('the secret key of this database').digest()
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
