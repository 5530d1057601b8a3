import { ApiError } from '../../../errors.ts'
import { listDayCheckpoints } from '../../../ledger/tree/checkpoint-day-store.ts'
import { type Checkpoint, readPublishedTree } from '../../../ledger/tree/checkpoint-store.ts'
import { type ProofDeps, readCheckpoint } from '../../../outlet/proof/read-proof.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { parseCheckpoint } from '../../../platform/tlog/signed-note.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { CheckpointHistory, CheckpointQuery } from '../../schema/dashboard/integrity.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { checkpointRecord } from './verify-run-record.ts'

const LIMIT_DEFAULT = 31

/** GET /dashboard/integrity/checkpoints: the newest one, and the last one of each earlier day. */
export const listCheckpoints = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/checkpoints',
  member: 'integrity.read',
  summary: 'List signed checkpoints',
  description:
    'Returns the newest signed checkpoint of a workspace, and the last one of each earlier day, for up to 400 days.',
  query: CheckpointQuery,
  errors: ['not_found'],
  response: CheckpointHistory,
  handle:
    (deps: ProofDeps) =>
    async ({ viewer, query: { workspaceId: named, limit = LIMIT_DEFAULT } }, reply) => {
      const isSigning = deps.signer !== null
      const none = { latest: null, isSigning, refusal: null, days: [] }
      return await readOrReportDrift(reply, none, async () => {
        const workspaceId = await visibleWorkspace(deps.db, viewer, named)
        const { refusal } = await readPublishedTree(deps.db, workspaceId)
        const latest = await findCheckpoint(deps, workspaceId)
        const days = await listDayCheckpoints(deps.db, { workspaceId, limit })
        return {
          latest: latest && { ...checkpointRecord(latest), ...namesIn(latest) },
          isSigning,
          refusal,
          days: days.map(checkpointRecord),
        }
      })
    },
})

/** Null if nothing is signed, or the events aren't signed yet. */
async function findCheckpoint(
  deps: ProofDeps,
  workspaceId: WorkspaceId,
): Promise<Checkpoint | null> {
  try {
    return await readCheckpoint(deps, workspaceId)
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** The service signs with the name of the origin, and witnesses with their own names. */
function namesIn({ origin, note }: Checkpoint) {
  const names = parseCheckpoint(note)?.signatures.map(({ name }) => name) ?? []
  return { origin, witnesses: [...new Set(names.filter((name) => name !== origin))] }
}
