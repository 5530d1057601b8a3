import type { UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import { SecretBox } from '../../platform/secret/secret-box.ts'
import { recoveryHash } from './recovery-code.ts'
import { consumeRecoveryHash, lockSecondFactor, setUsedStep } from './second-factor-store.ts'
import { acceptedStep } from './totp.ts'

/** How a member proved their second factor. */
type FactorUse =
  { secondFactor: 'CODE' } | { secondFactor: 'RECOVERY_CODE'; recoveryCodesLeft: number }

/** Encrypts and decrypts the secrets of second factors in the database. */
export function secondFactorBox(secretKey: Secret<Buffer>): SecretBox {
  return new SecretBox(secretKey, 'second-factor')
}

export function sealFactorSecret(box: SecretBox, userId: UserId, secret: Buffer): Buffer {
  return box.seal(secret.toString('base64'), userId)
}

/** Null if the service's secret key was replaced. */
export function openFactorSecret(box: SecretBox, userId: UserId, sealed: Buffer): Buffer | null {
  const text = box.open(sealed, userId)
  return text === null ? null : Buffer.from(text, 'base64')
}

/**
 * Checks a code of the member's app or a recovery code, and makes sure that it can't be used again. Null if it
 * is wrong or was used. If the secret can't be decrypted, only recovery codes work.
 */
export async function useSecondFactor(
  trx: Queryable,
  box: SecretBox,
  { userId, code, nowMs }: { userId: UserId; code: string; nowMs: number },
): Promise<FactorUse | null> {
  const factor = await lockSecondFactor(trx, userId)
  if (!factor) return null
  const recovery = recoveryHash(code)
  if (recovery) {
    const left = await consumeRecoveryHash(trx, { userId, recoveryHash: recovery })
    return left === null ? null : { secondFactor: 'RECOVERY_CODE', recoveryCodesLeft: left }
  }
  const secret = openFactorSecret(box, userId, factor.secret)
  const digits = code.replaceAll(/\s/g, '')
  const step = secret && acceptedStep(secret, digits, { nowMs, usedStep: factor.usedStep })
  if (step === null) return null
  await setUsedStep(trx, { userId, usedStep: step })
  return { secondFactor: 'CODE' }
}
