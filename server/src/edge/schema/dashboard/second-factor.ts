import { Type } from 'typebox'
import { RECOVERY_CODES } from '../../../tenancy/sign-in/recovery-code.ts'
import { DateTime, Nullable, STRICT } from '../common.ts'
import { named } from '../named.ts'

/** Longer than any code, because blanks and hyphens are ignored. */
export const FactorCode = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'The current code of the authenticator app, or a recovery code.',
})

export const SecondFactorRecord = Type.Object(
  {
    enabledAt: Nullable({
      ...DateTime,
      description: 'When the member turned on the second factor. Null if they have none.',
    }),
    recoveryCodesLeft: Type.Integer({
      minimum: 0,
      description: 'How many recovery codes have not been used.',
    }),
    isRequired: Type.Boolean({ description: 'Whether the company requires a second factor.' }),
  },
  { ...STRICT, description: 'The second factor of the signed-in member.' },
)

export const NewSecondFactor = Type.Object(
  {
    secret: Type.String({
      description: 'The secret for the authenticator app, in base32. It is not shown again.',
    }),
    uri: Type.String({ description: 'The secret as an `otpauth:` URI, for a QR code.' }),
  },
  { ...STRICT, description: 'A secret that waits for its first code.' },
)

export const RecoveryCodes = named(
  'RecoveryCodes',
  Type.Object(
    {
      recoveryCodes: Type.Array(Type.String(), {
        minItems: RECOVERY_CODES,
        maxItems: RECOVERY_CODES,
        description: 'Each signs the member in once, in place of a code. They are not shown again.',
      }),
    },
    { ...STRICT, description: 'The new recovery codes.' },
  ),
)
