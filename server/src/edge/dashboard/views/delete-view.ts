import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { deleteView } from '../../../outlet/saved/view-store.ts'
import { refuseBody } from '../../http/no-body.ts'
import { ViewParams } from '../../schema/dashboard/views.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getChangeableView, viewResource } from './view-resource.ts'

/** DELETE /dashboard/explorer/views/{viewId} */
export const deleteExplorerView =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.delete(
      '/dashboard/explorer/views/:viewId',
      {
        ...deps.signedIn('views.manage'),
        preValidation: refuseBody,
        schema: {
          operationId: 'deleteExplorerView',
          summary: 'Delete a view',
          description:
            'The owner can delete a view. An OWNER or ADMIN can also delete shared views.',
          tags: ['Views'],
          params: ViewParams,
          response: {
            204: Type.Null({ description: 'It is deleted.' }),
          },
        },
      },
      async (request, reply) => {
        await audited(deps, actorOf(request), async (trx, note) => {
          const view = await getChangeableView(trx, request.viewer, request.params.viewId)
          await deleteView(trx, view)
          const { name, visibility, workspaceId } = view
          note({
            action: 'VIEW_DELETED',
            resource: viewResource(view),
            metadata: { name, visibility, workspaceId },
          })
        })
        return await reply.code(204).send(null)
      },
    )
  }
