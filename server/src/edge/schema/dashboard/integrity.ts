import { Type } from 'typebox'
import { VERIFY_STATUSES } from '../../../outlet/verify/verify-run.ts'
import { DateTime, Nullable, STRICT, TIME_RANGE, TIME_ZONE, Uuid } from '../common.ts'
import { named } from '../named.ts'
import { WorkspaceKindName } from './company.ts'

const WorkspaceId = { ...Uuid, description: 'The ID of the workspace.' }

export const VerifyRunRecord = named(
  'VerifyRun',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the run.' },
      workspaceId: WorkspaceId,
      status: Type.Enum([...VERIFY_STATUSES], { description: 'The status of the run.' }),
      checked: Type.Integer({ minimum: 0, description: 'Events verified so far.' }),
      total: Type.Integer({ minimum: 0, description: 'Events in the chain when the run started.' }),
      verdict: Nullable(Type.String({ description: 'A human-readable result.' })),
      badSeq: Nullable(
        Type.Integer({ description: 'The sequence number of the first event that fails.' }),
      ),
      badEventId: Nullable({ ...Uuid, description: 'The ID of that event.' }),
      createdAt: { ...DateTime, description: 'When the run was created.' },
      finishedAt: Nullable({ ...DateTime, description: 'When the run finished.' }),
    },
    { ...STRICT, description: 'A verification of a chain.' },
  ),
)

export const VerifyRunInput = Type.Object(
  { workspaceId: WorkspaceId },
  { ...STRICT, description: 'Which chain to verify.' },
)

export const VerifyRunList = Type.Object(
  { runs: Type.Array(VerifyRunRecord, { description: 'The runs, newest first.' }) },
  { ...STRICT, description: 'Verification runs.' },
)

export const VerifyRunParams = Type.Object({ runId: Type.String() })

export const VerifyRunQuery = Type.Object(
  {
    workspaceId: Type.Optional({ ...Uuid, description: 'Only runs of this workspace.' }),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'The maximum number of runs.' }),
    ),
  },
  STRICT,
)

const ChainRecord = named(
  'Chain',
  Type.Object(
    {
      workspaceId: WorkspaceId,
      name: Type.String({ description: 'The name of the workspace.' }),
      kind: WorkspaceKindName,
      seq: Type.Integer({ minimum: 0, description: 'The sequence number of the last event.' }),
      hash: Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'The hash of the last event. All zeros if there are no events.',
      }),
      lastEventId: Nullable({ ...Uuid, description: 'The ID of the last event.' }),
      archivedSeq: Type.Integer({
        minimum: 0,
        description: 'The sequence number of the last archived event.',
      }),
      lastRun: Nullable(VerifyRunRecord),
    },
    { ...STRICT, description: 'The chain of a workspace.' },
  ),
)

export const ChainList = Type.Object(
  { chains: Type.Array(ChainRecord, { description: 'The chains.' }) },
  { ...STRICT, description: 'The chains that the member can see.' },
)

export const ArrivalQuery = Type.Object(
  { workspaceId: WorkspaceId, ...TIME_RANGE, ...TIME_ZONE },
  STRICT,
)

const BarCounts = Type.Array(Type.Integer({ minimum: 0 }))

export const ArrivalRecord = Type.Object(
  {
    from: { ...DateTime, description: 'Start of the time range.' },
    to: { ...DateTime, description: 'End of the time range.' },
    stepSeconds: Type.Integer({ description: 'The usual length of a bar, in seconds.' }),
    bars: Type.Array(DateTime, { description: 'The start of each bar.' }),
    lastBarEnd: { ...DateTime, description: 'The end of the last bar.' },
    counts: { ...BarCounts, description: 'The events received during each bar.' },
    previousCounts: {
      ...BarCounts,
      description: 'The same for the time range of the same length that ends at `from`.',
    },
    late: Type.Integer({
      minimum: 0,
      description:
        'How many of the events have a `timestamp` more than five minutes before or after `receivedAt`.',
    }),
    sequence: Nullable(
      Type.Object(
        {
          firstSeq: Type.Integer({ description: 'The sequence number of the first event.' }),
          lastSeq: Type.Integer({ description: 'The sequence number of the last event.' }),
          missing: Type.Integer({
            minimum: 0,
            description: 'How many events from the first to the last are missing.',
          }),
        },
        {
          ...STRICT,
          description:
            'The part of the chain that is not archived, whatever the time range. Null if there is none.',
        },
      ),
    ),
    hotSince: {
      ...DateTime,
      description: 'Only events that were received since this time are counted.',
    },
  },
  { ...STRICT, description: 'Received events over time.' },
)
