import { provableRecordJson } from '../../../ledger/event-record.ts'
import { type ProofDeps, proveInclusion } from '../../../outlet/proof/read-proof.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import { type GetEventDeps, readKeyEvent } from '../../event/key-event.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { asJsonText } from '../../page-json.ts'
import { EventParams } from '../../schema/event.ts'
import { EventProofResponse } from '../../schema/proof.ts'
import { asNote, prefersMediaType } from './proof-reply.ts'

/** GET /v1/events/{eventId}/proof */
export const getEventProof = defineRoute({
  method: 'GET',
  path: '/v1/events/:eventId/proof',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true },
  summary: 'Prove that an event is in the log',
  description:
    'Returns the event as in a JSONL export, and the proof that its `hash` is a leaf of the tree of the newest signed checkpoint. Anyone can check it offline, without an account. If `Accept` contains `text/plain`, the response is the proof as a C2SP tlog-proof, without the event. An event that is not signed yet gets 409; retry after the delay in `Retry-After`. The rules for archived events are those of `GET /v1/events/{eventId}`.',
  params: EventParams,
  errors: ['conflict', 'plan_required', 'archive_restoring'],
  response: EventProofResponse,
  handle: (deps: ProofDeps & GetEventDeps) => {
    const archiveReads = new ArchiveReadLimiter()
    return async ({ principal, params, headers }, reply) => {
      const call = { principal, archiveReads, disconnected: disconnectSignal(reply) }
      const event = await readKeyEvent(deps, call, params.eventId)
      const proof = await proveEvent(deps, call, event)
      reply.header('vary', 'accept')
      if (!prefersMediaType(headers.accept, 'text/plain')) {
        asJsonText(reply)
        const { event: record, ...rest } = proof
        return `{"event":${record},${JSON.stringify(rest).slice(1)}`
      }
      asNote(reply)
      const { index, hashes, checkpoint } = proof
      return ['c2sp.org/tlog-proof@v1', `index ${index}`, ...hashes, '', checkpoint].join('\n')
    }
  },
})

async function proveEvent(
  deps: ProofDeps & GetEventDeps,
  { principal, disconnected }: Parameters<typeof readKeyEvent>[1],
  event: Awaited<ReturnType<typeof readKeyEvent>>,
) {
  const { companyId, keyId: callerId } = principal
  const { checkpoint, index, hashes } = await deps.slots.hold(
    { companyId, callerId },
    disconnected,
    () => proveInclusion(deps, event),
  )
  return {
    event: provableRecordJson(event),
    index,
    size: checkpoint.size,
    hashes: hashes.map((hash) => hash.toString('base64')),
    checkpoint: checkpoint.note,
    vkey: checkpoint.vkey,
  }
}
