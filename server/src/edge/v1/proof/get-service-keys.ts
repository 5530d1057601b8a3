import { storageUnavailable } from '../../../ledger/segment/archive-refusal.ts'
import type { ListedSigningKey } from '../../../outlet/proof/key-list/stored-key-list.ts'
import type { ProofDeps } from '../../../outlet/proof/read-proof.ts'
import { StorageError } from '../../../platform/object-store/object-store.ts'
import type { MonotonicClock } from '../../../platform/time/clock.ts'
import { defineRoute } from '../../define-route.ts'
import { ServiceKeys } from '../../schema/proof.ts'

const FORMATS = [
  'c2sp.org/signed-note',
  'c2sp.org/tlog-checkpoint',
  'c2sp.org/tlog-tiles',
  'c2sp.org/tlog-proof@v1',
  'c2sp.org/tlog-cosignature',
  'annals/chain-format@v1',
]
/** Keys change rarely. Anyone can call this, so the storage is read at most this often, and after a failure too. */
const KEPT_MS = 60_000
const RETRY_MS = 5_000

type Kept = { keys: Promise<ListedSigningKey[]>; untilMs: number }

/** GET /.well-known/annals.json */
export const getServiceKeys = defineRoute({
  method: 'GET',
  path: '/.well-known/annals.json',
  public: true,
  summary: 'Get the public keys',
  description:
    'Returns the public keys that sign the checkpoints of all workspaces, with their times, and the formats that this service uses. Needs no key. Compare the public key with one that you got in another way, such as from the operator.',
  errors: ['unavailable'],
  response: ServiceKeys,
  handle: ({ signer, monotonic }: ProofDeps & { monotonic: MonotonicClock }) => {
    let kept: Kept | null = null
    return async () => {
      if (signer === null) return { publicKeys: [], formats: FORMATS }
      const nowMs = monotonic()
      if (kept === null || kept.untilMs <= nowMs) {
        kept = { keys: signer.listKeys(), untilMs: nowMs + KEPT_MS }
      }
      try {
        return { publicKeys: await kept.keys, formats: FORMATS }
      } catch (error) {
        kept.untilMs = Math.min(kept.untilMs, monotonic() + RETRY_MS)
        throw error instanceof StorageError ? storageUnavailable(error) : error
      }
    }
  },
})
