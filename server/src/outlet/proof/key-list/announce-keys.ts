import { hasEventAbout } from '../../../ledger/recent-event-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { CompanyId } from '../../../platform/id.ts'
import { DAY_MS, MINUTE_MS } from '../../../platform/time/time-units.ts'
import type { ServiceAudit } from '../../../tenancy/caller.ts'
import { lockCompany } from '../../../tenancy/company-store.ts'
import {
  getSystemWorkspace,
  listAllWorkspaces,
} from '../../../tenancy/workspace/workspace-store.ts'
import { type KeyChange, listUnannounced, markAnnounced } from './key-list.ts'
import type { KeyListDeps } from './key-list-copies.ts'

/** Longer than any downtime during which the key is changed. */
const WITHIN_MS = 365 * DAY_MS
/** The clocks of two nodes differ by less. An older entry is about an earlier time at which the key was current. */
const SKEW_MS = 5 * MINUTE_MS

/**
 * Writes one audit entry per company about each new signing key. If it is interrupted, the next call writes the
 * entries that are missing.
 */
export async function announceKeys(deps: KeyListDeps, audit: ServiceAudit): Promise<void> {
  const { db } = deps
  for (const change of await listUnannounced(deps)) {
    const workspaces = await listAllWorkspaces(db)
    for (const companyId of new Set(workspaces.map((workspace) => workspace.companyId))) {
      await db.transaction().execute((trx) => announceTo(trx, companyId, { change, audit }))
    }
    await markAnnounced(deps, change.publicKey)
  }
}

async function announceTo(
  trx: Queryable,
  companyId: CompanyId,
  { change, audit }: { change: KeyChange; audit: ServiceAudit },
): Promise<void> {
  // A command and a node can announce at the same time.
  await lockCompany(trx, companyId)
  const action = 'SIGNING_KEY_CHANGED'
  const resource = { type: 'signing-key', id: change.publicKey }
  const workspaceId = await getSystemWorkspace(trx, companyId)
  const about = { workspaceId, action, resourceId: resource.id }
  const nowMs = Date.parse(change.from) - SKEW_MS + WITHIN_MS
  if (await hasEventAbout(trx, about, { nowMs, withinMs: WITHIN_MS })) return
  const metadata = {
    publicKey: change.publicKey,
    previousPublicKey: change.previous?.publicKey ?? null,
    previousUntil: change.previous?.to ?? null,
  }
  await audit(trx, companyId, [{ action, resource, metadata }])
}
