import type { FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { HASH_BYTES } from '../../../ledger/tree/merkle.ts'
import { readTiles } from '../../../ledger/tree/tile-store.ts'
import { type ProofDeps, readCheckpoint } from '../../../outlet/proof/read-proof.ts'
import { readEntryBundle } from '../../../outlet/proof/read-entry-bundle.ts'
import { isInTree, parseTilePath, type TileRequest } from '../../../outlet/proof/tile-path.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { withRowOwner } from '../../../platform/scheduling/row-cost.ts'
import { ArchiveReadLimiter } from '../../archive-read-limiter.ts'
import { defineRoute } from '../../define-route.ts'
import type { ExportRouteDeps } from '../../export/export-resource.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import type { RequestSlots } from '../../http/request-slots.ts'
import { TileParams, TileResponse } from '../../schema/proof.ts'
import { getKeyWorkspace } from '../../workspace-resource.ts'

type TileDeps = ProofDeps & Pick<ExportRouteDeps, 'exports' | 'coldCache'> & { slots: RequestSlots }

type TileCall = {
  principal: FastifyRequest['principal']
  archiveReads: ArchiveReadLimiter
  disconnected: AbortSignal
}

/** A tile never changes. Only the caller may keep it, because it is the company's. */
const CACHED = 'private, max-age=31536000, immutable'

/** GET /v1/workspaces/{workspaceId}/tlog/tile/… */
export const getTile = defineRoute({
  method: 'GET',
  path: '/v1/workspaces/:workspaceId/tlog/tile/*',
  key: { permission: 'events:read' },
  config: { hasOwnLimits: true },
  summary: 'Get a tile of the log',
  description:
    'Returns hashes of the Merkle tree, or its entries, as C2SP tlog-tiles defines them. An entry is the core of an event: the canonical JSON that `hash` is the hash of. It contains commitments to the actor, the resource and the metadata, but not the values. Entries of archived events require a plan with exports.',
  params: TileParams,
  errors: ['conflict', 'plan_required', 'archive_restoring'],
  response: TileResponse,
  handle: (deps: TileDeps) => {
    const archiveReads = new ArchiveReadLimiter()
    return async ({ principal, params }, reply) => {
      const call = { principal, archiveReads, disconnected: disconnectSignal(reply) }
      const bytes = await withRowOwner(principal.companyId, () => readTile(deps, call, params))
      reply.header('cache-control', CACHED).type('application/octet-stream')
      return bytes
    }
  },
})

async function readTile(
  deps: TileDeps,
  call: TileCall,
  { workspaceId: named, '*': path }: Static<typeof TileParams>,
): Promise<Buffer> {
  const tile = parseTilePath(path)
  const workspaceId = await findInTree(deps, call, named, tile)
  if (!tile?.isEntries) return await readHashes(deps, call, workspaceId, tile)
  const { plan } = call.principal
  return await readEntryBundle(entryReads(deps, call), { ...tile, workspaceId, plan })
}

/** The workspace, if its signed tree has the tile. */
async function findInTree(
  deps: TileDeps,
  call: TileCall,
  named: string,
  tile: TileRequest | null,
): Promise<WorkspaceId> {
  const { companyId, keyId: callerId } = call.principal
  return await deps.slots.hold({ companyId, callerId }, call.disconnected, async () => {
    const { id } = await getKeyWorkspace(deps.db, call.principal, named)
    const { size } = await readCheckpoint(deps, id)
    if (tile === null || !isInTree(tile, size)) throw new ApiError('not_found')
    return id
  })
}

async function readHashes(
  deps: TileDeps,
  call: TileCall,
  workspaceId: WorkspaceId,
  tile: TileRequest | null,
): Promise<Buffer> {
  if (tile === null) throw new ApiError('not_found')
  using _slot = await takeSlot(deps, call)
  const hashes = (await readTiles(deps.db, workspaceId, [tile]))(tile)
  const bytes = tile.width * HASH_BYTES
  if (hashes === null || hashes.length < bytes) throw new ApiError('not_found')
  return hashes.subarray(0, bytes)
}

function entryReads(deps: TileDeps, call: TileCall): Parameters<typeof readEntryBundle>[0] {
  const { companyId, keyId: callerId } = call.principal
  const { database, archive, timeouts } = deps.exports
  return {
    database,
    archive,
    cache: deps.coldCache,
    acquire: () => takeSlot(deps, call),
    acquireArchiveRead: () => call.archiveReads.take({ companyId, callerId }, call.disconnected),
    checkMs: timeouts.checkMs,
    signal: call.disconnected,
  }
}

function takeSlot({ slots }: TileDeps, { principal, disconnected }: TileCall): Promise<Disposable> {
  return slots.take(principal.companyId, disconnected, principal.keyId)
}
