import { Type } from 'typebox'
import { VERIFY_STATUSES } from '../../../outlet/verify/verify-run.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'

export const VerifyRunRecord = Type.Object(
  {
    id: Uuid,
    workspaceId: Uuid,
    status: Type.Enum([...VERIFY_STATUSES]),
    checked: Type.Integer({ minimum: 0, description: 'Events that were found to hold so far.' }),
    total: Type.Integer({ minimum: 0, description: 'Events of the chain when the run began.' }),
    verdict: Nullable(Type.String({ description: 'A sentence.' })),
    badSeq: Nullable(Type.Integer({ description: 'The first event that does not hold.' })),
    badEventId: Nullable(Uuid),
    createdAt: DateTime,
    finishedAt: Nullable(DateTime),
  },
  STRICT,
)

export const VerifyRunInput = Type.Object({ workspaceId: Uuid }, STRICT)

export const VerifyRunList = Type.Object({ runs: Type.Array(VerifyRunRecord) }, STRICT)

export const VerifyRunParams = Type.Object({ runId: Type.String() })

export const VerifyRunQuery = Type.Object(
  {
    workspaceId: Type.Optional(Uuid),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  },
  STRICT,
)

export const ChainRecord = Type.Object(
  {
    workspaceId: Uuid,
    name: Type.String(),
    kind: Type.Enum(['CUSTOMER', 'SYSTEM']),
    seq: Type.Integer({ minimum: 0, description: 'How many events the chain has.' }),
    hash: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'Of the last one; zeros without any.',
    }),
    lastEventId: Nullable(Uuid),
    archivedSeq: Type.Integer({ minimum: 0, description: 'Up to here it lies in the archive.' }),
    lastRun: Nullable(VerifyRunRecord),
  },
  STRICT,
)

export const ChainList = Type.Object({ chains: Type.Array(ChainRecord) }, STRICT)
