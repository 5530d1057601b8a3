import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. About 32 ms. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const
const SALT_BYTES = 16

/** Stands in for the hash of an account that doesn't exist. No password matches it. */
const DUMMY = { salt: Buffer.alloc(SALT_BYTES), hash: Buffer.alloc(COST.tagLength) } as const

/** Returns `argon2id$<salt>$<hash>`, both in base64. All hashes have the same cost, so it isn't stored. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await hashOf(password, salt)
  return `argon2id$${salt.toString('base64')}$${hash.toString('base64')}`
}

/** Pass null if the account doesn't exist: neither the result nor the timing reveals that. */
export async function verifyPassword(password: string, stored: string | null): Promise<boolean> {
  const { salt, hash: expected } = parse(stored ?? '') ?? DUMMY
  const actual = await hashOf(password, salt)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

/** Normalizes the password, because keyboards produce different characters that look the same. */
async function hashOf(password: string, nonce: Buffer): Promise<Buffer> {
  const message = Buffer.from(password.normalize('NFKC'))
  return await derive('argon2id', { ...COST, message, nonce })
}

function parse(stored: string): { salt: Buffer; hash: Buffer } | null {
  const [name, salt, hash] = stored.split('$')
  if (name !== 'argon2id' || !salt || !hash) return null
  return { salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}
