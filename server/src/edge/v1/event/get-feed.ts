import { Type } from 'typebox'
import { defineRoute } from '../../define-route.ts'
import { type FeedDeps, FeedFollower } from '../../feed/feed-follower.ts'
import { asJsonText } from '../../page-json.ts'
import { WorkspaceParams } from '../../schema/common.ts'
import { EventFeed, FeedQuery } from '../../schema/event.ts'

const LIMIT_DEFAULT = 100

/** GET /v1/workspaces/{workspaceId}/feed: the events of a chain in order, and new ones as they arrive. */
export const getFeed = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/feed',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true, hasLargeResponses: true, isLongRunning: true },
  summary: 'Follow the log',
  description:
    'Returns the events of a workspace after a sequence number, in the order of the chain, without gaps or duplicates. To follow the log, store `next` together with the events, and send it as `after` in the next request. With `waitSeconds`, a request at the end of the chain waits for new events; if none arrive, `data` is empty. A page can have fewer events than `limit` although more follow. Archived events require a plan with exports, otherwise the response is 403 `plan_required` and names the `after` at which the hot events start. A key can have 10 waiting requests on each node.',
  params: WorkspaceParams,
  query: FeedQuery,
  errors: ['plan_required', 'archive_restoring'],
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(EventFeed),
  handle: (deps: FeedDeps, app) => {
    const follower = new FeedFollower(deps)
    app.addHook('preClose', async () => deps.feedWaiters.close())
    return async (request, reply) => {
      const { after = 0, limit = LIMIT_DEFAULT, waitSeconds = 0 } = request.query
      const { records, next } = await follower.follow(request, reply, {
        named: request.params.workspaceId,
        after,
        limit,
        waitMs: waitSeconds * 1_000,
      })
      asJsonText(reply)
      return `{"data":[${records}],"next":${next}}`
    }
  },
})
