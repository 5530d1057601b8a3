import { archiveUrlOf } from '../../archive-url-of.ts'
import type { Config } from '../../config.ts'
import { inspectSigningKey, type SigningKeyStatus } from '../../outlet/proof/key-list/key-list.ts'
import { refuseOtherSecretKey } from '../../outlet/webhook/secret/check-secret-key.ts'
import { findSecretKey } from '../../platform/secret/secret-key.ts'
import type { Secret } from '../../platform/secret/secret.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { type Finding, finding, type Machine, type OpenLedger } from './check.ts'
import { waitForDisk } from './wait-for-disk.ts'

/** The key that a start would use. Null if it would create one. */
export async function secretKeyOf({
  secretKey,
  secretKeyFile,
  dataDir,
}: Config): Promise<Secret<Buffer> | null> {
  const configured = secretKey ?? secretKeyFile
  if (configured !== null) return configured
  await waitForDisk(dataDir)
  return findSecretKey(dataDir)
}

export async function checkKeyFile({ config }: Machine): Promise<Finding> {
  if ((await secretKeyOf(config)) !== null)
    return finding.ok('The secret key is 32 bytes in base64.')
  return finding.ok(`There is no secret key yet. The first start creates one in ${config.dataDir}.`)
}

/** Whether the database is used with this key. */
export async function compareSecretKey({ database, secretKey }: OpenLedger): Promise<Finding> {
  if (secretKey === null) {
    return finding.failed(
      'The secret key that the database requires is missing or damaged.',
      'Restore secret.key in the data folder, or set ANNALS_SECRET_KEY_FILE.',
    )
  }
  await refuseOtherSecretKey({ db: database.db, secretKey })
  return finding.ok('This is the secret key of the database.')
}

export async function checkSigner({
  config,
  database,
  archive,
  secretKey,
}: OpenLedger): Promise<Finding> {
  if (archiveUrlOf(config) === null) return finding.ok('Without an archive, nothing is signed.')
  if (secretKey === null) return finding.skipped('This needs the secret key.')
  const configured = config.signingKey ?? config.signingKeyFile
  const keySource = { secretKey, configured, previous: config.signingKeyPrevious }
  const deps = { db: database.db, archive, keySource }
  const { status, problem } = await inspectSigningKey(deps, clock)
  if (problem === null) return findingOfStatus(status)
  return finding.failed(
    `The list of signing keys was changed: ${problem}.`,
    'Follow "The list of signing keys was changed" in docs/operations.md.',
  )
}

function findingOfStatus(status: SigningKeyStatus): Finding {
  switch (status.kind) {
    case 'unused':
      return finding.ok('Nothing is signed yet.')
    case 'current':
      return finding.ok('The signing key of this configuration is the one that signs.')
    case 'overlap':
      return finding.warning(
        `A replaced signing key signs until ${status.to}, but this configuration doesn't have it.`,
        'Set ANNALS_SIGNING_KEY_PREVIOUS to the replaced key until then.',
      )
    case 'replaced':
      return finding.failed(
        `The signing key of this configuration was replaced, and has not signed since ${status.to}.`,
        "Set ANNALS_SIGNING_KEY to the new key. A replaced key can't be used again.",
      )
    case 'new':
      return status.isPreviousKnown
        ? finding.warning(
            'The next start replaces the signing key. Both keys then sign for 30 days.',
            'If you did not plan this, set ANNALS_SIGNING_KEY to the key of the other nodes.',
          )
        : finding.failed(
            'The next start would replace the signing key, and the old one would stop signing at once.',
            'Set ANNALS_SIGNING_KEY to the key of the other nodes; to replace it, set ANNALS_SIGNING_KEY_PREVIOUS to the old key.',
          )
    default:
      return status satisfies never
  }
}
