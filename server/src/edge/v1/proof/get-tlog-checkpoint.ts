import { type ProofDeps, readCheckpoint } from '../../../outlet/proof/read-proof.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { NoteResponse } from '../../schema/proof.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'
import { asNote } from './proof-reply.ts'

/** GET /v1/workspaces/{workspaceId}/tlog/checkpoint */
export const getTlogCheckpoint = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/tlog/checkpoint',
  key: { permission: 'events:read' },
  summary: 'Get the checkpoint of the log',
  description:
    'Returns the same signed checkpoint as text, for clients of C2SP tlog-tiles. The prefix of the log is `/v1/workspaces/{workspaceId}/tlog`.',
  params: WorkspaceParams,
  errors: ['conflict'],
  response: NoteResponse,
  handle:
    (deps: ProofDeps) =>
    async ({ principal, params }, reply) => {
      const workspace = await getKeyWorkspace(deps.db, principal, params.workspaceId)
      const { note } = await readCheckpoint(deps, workspace.id)
      asNote(reply)
      return note
    },
})
