import { type ProofDeps, proveConsistency } from '../../../outlet/proof/read-proof.ts'
import { defineRoute } from '../../define-route.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { ConsistencyProof, ConsistencyQuery } from '../../schema/proof.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

/** GET /v1/workspaces/{workspaceId}/consistency */
export const getConsistency = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/consistency',
  key: { permission: 'events:read' },
  summary: 'Prove that the log only grew',
  description:
    'Returns the proof that the tree of `to` events extends the tree of `from` events, so that no event was changed or removed in between. Sizes don’t have to be those of checkpoints. `to` can’t be larger than the newest checkpoint.',
  params: WorkspaceParams,
  query: ConsistencyQuery,
  errors: ['conflict'],
  response: ConsistencyProof,
  handle:
    (deps: ProofDeps) =>
    async ({ principal, params, query: { from, to } }) => {
      const workspace = await getKeyWorkspace(deps.db, principal, params.workspaceId)
      const proof = await proveConsistency(deps, workspace.id, { from, to })
      return { ...proof, hashes: proof.hashes.map((hash) => hash.toString('base64')) }
    },
})
