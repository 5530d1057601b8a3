import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'

const PROBE = 'signer/conditional-writes'

/**
 * Some S3-compatible servers ignore conditions and always write. Two signers could then sign different trees,
 * so nothing is signed there.
 */
export async function checkConditionalWrites(archive: ObjectStore): Promise<void> {
  const bytes = Buffer.from('Annals uses this object to check that the storage compares tags.\n')
  await archive.replace(PROBE, { bytes, tag: null })
  const again = await archive.replace(PROBE, { bytes, tag: null })
  const stale = await archive.replace(PROBE, { bytes, tag: '"00000000000000000000000000000000"' })
  if (again === null && stale === null) return
  throw new StorageError(
    'The archive storage ignores If-Match or If-None-Match, so checkpoints can’t be signed safely. Use a storage that supports conditional writes.',
  )
}
