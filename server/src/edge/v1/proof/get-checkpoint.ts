import type { Checkpoint } from '../../../ledger/tree/checkpoint-store.ts'
import { type ProofDeps, readCheckpoint } from '../../../outlet/proof/read-proof.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { CheckpointResponse } from '../../schema/proof.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'
import { asNote, prefersMediaType } from './proof-reply.ts'

/** GET /v1/workspaces/{workspaceId}/checkpoint */
export const getCheckpoint = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/checkpoint',
  key: { permission: 'events:read' },
  summary: 'Get the signed checkpoint',
  description:
    'Returns the newest signed checkpoint of a workspace: the size and the root of the RFC 6962 Merkle tree over its events, where the leaf of an event is its `hash` and its index is `seq` − 1. It is text (a C2SP tlog-checkpoint), or JSON if `Accept` contains `application/json`. It includes the cosignatures of the witnesses that have seen it. Keep checkpoints: a later one must extend them, and `consistency` proves it. While the events of a workspace are not signed yet, the response is 409.',
  params: WorkspaceParams,
  errors: ['conflict'],
  response: CheckpointResponse,
  handle:
    (deps: ProofDeps) =>
    async ({ principal, params, headers }, reply) => {
      const workspace = await getKeyWorkspace(deps.db, principal, params.workspaceId)
      const checkpoint = await readCheckpoint(deps, workspace.id)
      reply.header('vary', 'accept')
      if (prefersMediaType(headers.accept, 'application/json')) return checkpointRecord(checkpoint)
      asNote(reply)
      return checkpoint.note
    },
})

function checkpointRecord({ origin, size, root, note, vkey, signedAt }: Checkpoint) {
  const times = { signedAt: signedAt.toISOString() }
  return { origin, size, root: root.toString('base64'), note, vkey, ...times }
}
