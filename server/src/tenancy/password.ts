import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. About 32 ms. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const
const SALT_BYTES = 16

/** Nobody's: no password has it, and finding that out takes as long as with any other. */
const NOBODYS = { salt: Buffer.alloc(SALT_BYTES), hash: Buffer.alloc(COST.tagLength) } as const

/** Prints as `argon2id$<salt>$<hash>`, both in base64; the cost is one for all and lives here. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await hashOf(password, salt)
  return `argon2id$${salt.toString('base64')}$${hash.toString('base64')}`
}

/** Null is an account that does not exist; what it answers and how long it takes do not show that. */
export async function isPasswordOf(password: string, stored: string | null): Promise<boolean> {
  const { salt, hash: expected } = parse(stored ?? '') ?? NOBODYS
  const actual = await hashOf(password, salt)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}

/** One password may be typed as different characters that look the same; they are the same to us. */
async function hashOf(password: string, nonce: Buffer): Promise<Buffer> {
  const message = Buffer.from(password.normalize('NFKC'))
  return await derive('argon2id', { ...COST, message, nonce })
}

function parse(stored: string): { salt: Buffer; hash: Buffer } | null {
  const [name, salt, hash] = stored.split('$')
  if (name !== 'argon2id' || !salt || !hash) return null
  return { salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') }
}
