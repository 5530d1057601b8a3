import { Type } from 'typebox'
import { CHECKPOINT_DAYS_MAX } from '../../../ledger/tree/checkpoint-day-store.ts'
import { VERIFY_STATUSES } from '../../../outlet/verify/verify-run.ts'
import { DateTime, Nullable, STRICT, TIME_RANGE, TIME_ZONE, Uuid } from '../common.ts'
import { named } from '../named.ts'
import { WorkspaceKindName } from './company.ts'

const WorkspaceId = { ...Uuid, description: 'The ID of the workspace.' }

const CHECKPOINT_FIELDS = {
  size: Type.Integer({
    minimum: 0,
    description: 'The number of events that it covers, starting with the first.',
  }),
  root: Type.String({ description: 'The root of the Merkle tree over them, in base64.' }),
  note: Type.String({ description: 'The signed checkpoint as text, a C2SP signed note.' }),
  vkey: Type.String({ description: 'The verifier key of its first signature.' }),
  signedAt: { ...DateTime, description: 'When it was signed.' },
}

const CheckpointRecord = named(
  'DashboardCheckpoint',
  Type.Object(CHECKPOINT_FIELDS, { ...STRICT, description: 'A signed checkpoint.' }),
)

export const VerifyRunRecord = named(
  'VerifyRun',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the run.' },
      workspaceId: WorkspaceId,
      status: Type.Enum([...VERIFY_STATUSES], { description: 'The status of the run.' }),
      checked: Type.Integer({ minimum: 0, description: 'Events verified so far.' }),
      total: Type.Integer({
        minimum: 0,
        description:
          'The number of events to verify, or 0 until it is known. It can exceed the number of events in the period, because archived files are verified as a whole.',
      }),
      from: Nullable({
        ...DateTime,
        description: 'Start of the verified period, inclusive. Null for the whole chain.',
      }),
      to: Nullable({ ...DateTime, description: 'End of the verified period, exclusive.' }),
      firstSeq: Nullable(
        Type.Integer({
          description:
            'The sequence number of the first verified event. Null unless the run holds and there is one.',
        }),
      ),
      lastSeq: Nullable(
        Type.Integer({ description: 'The sequence number of the last verified event.' }),
      ),
      checkpoint: Nullable(CheckpointRecord),
      createdBy: Type.Object(
        {
          kind: Type.Enum(['MEMBER', 'SCHEDULE'], {
            description: 'Whether a member or the schedule started it.',
          }),
          email: Nullable(
            Type.String({
              description:
                'The email address of the member. Null for the schedule or a removed member.',
            }),
          ),
        },
        { ...STRICT, description: 'Who started the run.' },
      ),
      verdict: Nullable(Type.String({ description: 'A human-readable result.' })),
      badSeq: Nullable(
        Type.Integer({ description: 'The sequence number of the first event that fails.' }),
      ),
      badEventId: Nullable({ ...Uuid, description: 'The ID of that event.' }),
      createdAt: { ...DateTime, description: 'When the run was created.' },
      finishedAt: Nullable({ ...DateTime, description: 'When the run finished.' }),
    },
    {
      ...STRICT,
      description:
        'A verification of a chain or of a period. `checkpoint` is the signed checkpoint that was the newest at the time, and covers at least some of the verified events. Null if none did, or if the run doesn’t hold.',
    },
  ),
)

export const VerifyRunInput = Type.Object(
  {
    workspaceId: WorkspaceId,
    from: Type.Optional({
      ...DateTime,
      description:
        'Verify only events received at this time or later. Requires `to`. Without `from` and `to`, the whole chain is verified.',
    }),
    to: Type.Optional({
      ...DateTime,
      description: 'Verify only events received before this time. A time in the future means now.',
    }),
  },
  { ...STRICT, description: 'Which chain to verify, or which period of it.' },
)

export const VerifyRunList = Type.Object(
  { runs: Type.Array(VerifyRunRecord, { description: 'The runs, newest first.' }) },
  { ...STRICT, description: 'Verification runs.' },
)

export const VerifyRunParams = Type.Object({ runId: Type.String() })

export const VerifyRunQuery = Type.Object(
  {
    workspaceId: Type.Optional({ ...Uuid, description: 'Only runs of this workspace.' }),
    before: Type.Optional({
      ...Uuid,
      description: 'The ID of a run. Returns only runs created before it.',
    }),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, description: 'The maximum number of runs.' }),
    ),
  },
  STRICT,
)

export const CheckpointQuery = Type.Object(
  {
    workspaceId: WorkspaceId,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: CHECKPOINT_DAYS_MAX,
        description: 'The maximum number of days. Default: 31.',
      }),
    ),
  },
  STRICT,
)

export const CheckpointHistory = Type.Object(
  {
    latest: Nullable(
      Type.Object(
        {
          ...CHECKPOINT_FIELDS,
          origin: Type.String({ description: 'The name of the log in its checkpoints.' }),
          witnesses: Type.Array(Type.String(), {
            description: 'The names of the witnesses that cosigned it. They are not verified here.',
          }),
        },
        {
          ...STRICT,
          description:
            'The newest checkpoint. Null if the events are not signed yet, or nothing is signed.',
        },
      ),
    ),
    isSigning: Type.Boolean({
      description: 'Whether this service signs checkpoints. It does if it has an archive.',
    }),
    refusal: Nullable(
      Type.String({
        description: 'Why the signer refuses to sign this chain. Null while it signs.',
      }),
    ),
    days: Type.Array(CheckpointRecord, {
      description: 'The last checkpoint of each earlier day (UTC) that has one, newest first.',
    }),
  },
  { ...STRICT, description: 'The signed checkpoints of a chain over time.' },
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
