import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { SealedEvent } from '../../../ledger/event.ts'
import { filterText } from '../../../ledger/filter/event-filter.ts'
import { provableRecordJson } from '../../../ledger/event-record.ts'
import {
  positionText,
  positionTexts,
  readPosition,
} from '../../../outlet/explorer/live-tail/live-position.ts'
import { chargeCpu } from '../../../platform/scheduling/time-slice.ts'
import { canSeeWorkspace, type Viewer } from '../../../tenancy/viewer.ts'
import { refuseViewer } from '../../auth/require-session.ts'
import { refuseSignedOut, type SessionGrant } from '../../auth/session-access.ts'
import { defineRoute } from '../../define-route.ts'
import { EventStream, frameBody } from '../../event/event-stream.ts'
import { STRICT } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { EXPLORED_FILTERS, type Explored, readExplored } from './explorer-query.ts'

type FollowDeps = Pick<
  DashboardDeps,
  'db' | 'clock' | 'cursors' | 'cookie' | 'sessionAccess' | 'liveTail'
>

/**
 * What opening a stream costs the main thread apart from its handler: a connection of its own, a session, a
 * query string. Measured with 200 filters.
 */
const OPENING_MS = 1
const OPENING_MS_PER_FILTER_CHARACTER = 1.5 / 10_000

/** GET /dashboard/events/live: streams new events as server-sent events. */
export const followEvents = defineRoute({
  method: 'GET',
  path: '/dashboard/events/live',
  member: 'events.read',
  config: { isLongRunning: true },
  options: {
    exposeHeadRoute: false,
  },
  summary: 'Stream new events',
  description:
    'Server-sent events: `event` contains an event, `gap` means that events were skipped and the page should reload, `end` means that the session has ended. Resumes from `Last-Event-ID`, up to 1,000 events back. A member can have five streams.',
  produces: 'text/event-stream',
  query: Type.Object({ ...EXPLORED_FILTERS }, STRICT),
  errors: ['not_found'],
  response: Type.Unsafe<string>(Type.String({ description: 'A stream of server-sent events.' })),
  handle: (deps: FollowDeps, app) => {
    const streams = new Set<EventStream>()
    let isClosing = false
    app.addHook('preClose', async () => {
      isClosing = true
      for (const stream of streams) stream.end()
    })
    return async ({ viewer, query, headers, clientAddress: address }, reply) => {
      if (isClosing) throw new ApiError('unavailable')
      const explored = await readExplored(deps, viewer, query)
      const stream = await openStream(deps, reply, {
        viewer,
        explored,
        token: deps.cookie.read(headers.cookie) ?? '',
        address,
        lastId: String(headers['last-event-id'] ?? ''),
        onClose: () => streams.delete(stream),
      })
      streams.add(stream)
      if (isClosing) stream.end()
      return reply
    }
  },
})

type Opening = {
  viewer: Viewer
  explored: Explored
  token: string
  address: string
  lastId: string
  onClose: () => void
}

async function openStream(
  deps: FollowDeps,
  reply: FastifyReply,
  { viewer, explored, token, address, lastId, onClose }: Opening,
): Promise<EventStream> {
  const { companyId, userId } = viewer
  const { workspaceIds, filter } = explored
  const binding = `live/${userId}/${workspaceIds.toSorted().join()}/${filterText(filter)}`
  chargeCpu(companyId, OPENING_MS + binding.length * OPENING_MS_PER_FILTER_CHARACTER)
  const ids = streamIds(deps, binding)
  const position = ids.decode(lastId)
  const resumed = position === null ? null : readPosition(position, workspaceIds)
  const { positions, isGap } = await deps.liveTail.findStart(workspaceIds, resumed)
  const send = (event: string) => stream.send({ id: currentId, event, data: '{}' })
  const currentId = () => ids.encode(positionText(positions))
  // Follow before the response starts, so that it can still be refused. No events arrive before then.
  const stop = deps.liveTail.follow({
    companyId,
    userId,
    filter,
    positions,
    isStalled: () => stream.isStalled,
    onEvents: (events, chain) => {
      const textAt = positionTexts(positions, chain)
      const frames = events.map((event) => ({
        id: ids.encode(textAt(event.seq)),
        body: sharedBody(event),
      }))
      stream.sendAll(frames)
    },
    onGap: () => send('gap'),
    onReplaced: () => stream.end(),
  })
  const access = deps.sessionAccess.watch(
    token,
    (grant) => refuseChanged(grant, { viewer, explored, address }),
    () => stream.cut({ id: currentId, event: 'end', data: '{}' }),
  )
  const stream = new EventStream(reply, {
    onBeat: currentId,
    onMissed: () => send('gap'),
    onClose: () => {
      access[Symbol.dispose]()
      stop()
      onClose()
    },
  })
  // The stream can't resume from an id of other chains or filters.
  send(isGap || (lastId !== '' && resumed === null) ? 'gap' : 'open')
  return stream
}

/**
 * The ids of one stream: a signature of the binding, computed once, and the position. The position needs no
 * signature, because it only selects among events that the member can read anyway.
 */
function streamIds({ cursors }: FollowDeps, binding: string) {
  const signature = cursors.encode('live', binding)
  return {
    encode: (position: string) => `${signature}.${position}`,
    /** Null unless the id comes from a stream with the same binding. */
    decode: (id: string): string | null => {
      const dot = id.indexOf('.')
      return cursors.decode(id.slice(0, dot), binding) === 'live' ? id.slice(dot + 1) : null
    },
  }
}

/** Keyed by the event object, so that an event is serialized once for all of its followers. */
const bodies = new WeakMap<SealedEvent, Buffer>()

function sharedBody(event: SealedEvent): Buffer {
  const body = bodies.get(event) ?? frameBody('event', provableRecordJson(event))
  bodies.set(event, body)
  return body
}

/** Throws unless the session is still valid, with the same role and workspaces. */
function refuseChanged(
  grant: SessionGrant | null,
  { viewer, explored, address }: Pick<Opening, 'viewer' | 'explored' | 'address'>,
): void {
  const now = refuseSignedOut(grant)
  refuseViewer(now.viewer, 'events.read', address)
  if (now.viewer.role !== viewer.role) throw new ApiError('insufficient_role')
  const { workspaceId, workspaceIds } = explored
  const isSame =
    workspaceId === null
      ? now.workspaceIds.toSorted().join() === workspaceIds.toSorted().join()
      : canSeeWorkspace(now.viewer, workspaceId)
  if (!isSame) throw new ApiError('not_found')
}
