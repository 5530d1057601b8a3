import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. About 32 ms. */
const COST = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const

/** Prints as `argon2id$<salt>$<hash>`, both in base64; the cost is one for all and lives here. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16)
  const hash = await derive('argon2id', { ...COST, message: Buffer.from(password), nonce })
  return `argon2id$${nonce.toString('base64')}$${hash.toString('base64')}`
}

export async function isPasswordOf(password: string, stored: string): Promise<boolean> {
  const [name, nonce, hash] = stored.split('$')
  if (name !== 'argon2id' || !nonce || !hash) return false
  const expected = Buffer.from(hash, 'base64')
  const actual = await derive('argon2id', {
    ...COST,
    message: Buffer.from(password),
    nonce: Buffer.from(nonce, 'base64'),
  })
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
