import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { filterText } from '../../../ledger/event-filter.ts'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import { positionText, readPosition } from '../../../outlet/console/live-position.ts'
import { findViewer } from '../../../tenancy/session-store.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { EventStream } from '../../event-stream.ts'
import { errorResponses, SESSION_ERRORS, STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { EXPLORED_FILTERS, type Explored, readExplored } from './explorer-query.ts'

/** How long somebody who may no longer see them is still told of events. */
const CHECK_EVERY_MS = 10_000

type FollowDeps = Pick<
  DashboardDeps,
  'db' | 'hasty' | 'clock' | 'cursors' | 'cookie' | 'signedIn' | 'liveTail'
>

/** GET /dashboard/events/live: new events as they come, as server-sent events. */
export const followEvents =
  (deps: FollowDeps): FastifyPluginAsyncTypebox =>
  async (app) => {
    const streams = new Set<EventStream>()
    let isClosing = false
    app.addHook('preClose', async () => {
      isClosing = true
      for (const stream of streams) stream.end()
    })
    app.get(
      '/dashboard/events/live',
      {
        ...deps.signedIn('events.read'),
        exposeHeadRoute: false,
        schema: {
          operationId: 'followEvents',
          summary: 'Follow new events',
          description:
            'Server-sent events: `event` with a record, `gap` when some were left out and the page should be loaded anew, `end` when the session is over. Resumes by `Last-Event-ID` up to 1,000 events back. Five streams a member.',
          tags: ['Explorer'],
          produces: ['text/event-stream'],
          querystring: Type.Object({ ...EXPLORED_FILTERS }, STRICT),
          response: {
            200: Type.Unsafe<string>(Type.String({ description: 'A stream of events.' })),
            ...errorResponses(...SESSION_ERRORS, 'not_found', 'rate_limited', 'overloaded'),
          },
        },
      },
      async ({ viewer, query, headers }, reply) => {
        if (isClosing) throw new ApiError('unavailable')
        const explored = await readExplored(deps, viewer, query)
        const stream = await openStream(deps, reply, {
          viewer,
          explored,
          token: deps.cookie.read(headers.cookie) ?? '',
          lastId: String(headers['last-event-id'] ?? ''),
          onClose: () => streams.delete(stream),
        })
        streams.add(stream)
        if (isClosing) stream.end()
        return reply
      },
    )
  }

type Opening = {
  viewer: Viewer
  explored: Explored
  token: string
  lastId: string
  onClose: () => void
}

async function openStream(
  deps: FollowDeps,
  reply: FastifyReply,
  { viewer, explored, token, lastId, onClose }: Opening,
): Promise<EventStream> {
  const { companyId, userId } = viewer
  const { workspaceIds, filter } = explored
  const binding = `live/${userId}/${workspaceIds.toSorted().join()}/${filterText(filter)}`
  const place = lastId === '' ? null : deps.cursors.decode(lastId, binding)
  const resumed = place === null ? null : readPosition(place, workspaceIds)
  const { positions, isGap } = await deps.liveTail.findStart(workspaceIds, resumed)
  const send = (event: string, data = '{}') => stream.send({ id: idHere(), event, data })
  const idHere = () => deps.cursors.encode(positionText(positions), binding)
  // Refused before the answer begins; told of nothing before it has begun.
  const stop = deps.liveTail.follow({
    companyId,
    userId,
    filter,
    positions,
    onEvent: (event) => send('event', provableRecordJson(event)),
    onGap: () => send('gap'),
  })
  const check = setInterval(() => void endUnlessAllowed(), CHECK_EVERY_MS)
  check.unref()
  const endUnlessAllowed = async () => {
    if (await mayStillSee(deps, { token, viewer, explored })) return
    send('end')
    stream.end()
  }
  const stream = new EventStream(reply, {
    onBeat: idHere,
    onMissed: () => send('gap'),
    onClose: () => {
      clearInterval(check)
      stop()
      onClose()
    },
  })
  // A place that is not of these chains and filters is no place to go on from.
  send(isGap || (lastId !== '' && resumed === null) ? 'gap' : 'open')
  return stream
}

/** Whether the session goes on and sees the same; a follower is no use of it. */
async function mayStillSee(
  { hasty, clock }: FollowDeps,
  { token, viewer, explored }: Pick<Opening, 'token' | 'viewer' | 'explored'>,
): Promise<boolean> {
  try {
    const now = await findViewer(hasty, token, clock(), { isUse: false })
    if (!now || now.role !== viewer.role) return false
    const seen = await visibleWorkspaces(hasty, now, explored.workspaceId ?? undefined)
    return seen.workspaceIds.toSorted().join() === explored.workspaceIds.toSorted().join()
  } catch (error) {
    // A database that does not answer now is asked again; what it refuses is final.
    return !(error instanceof ApiError)
  }
}
