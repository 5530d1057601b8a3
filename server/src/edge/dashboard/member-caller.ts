import assert from 'node:assert/strict'
import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { type AuditOrigin, recorderOf, writeAuditEntry } from '../../intake/audit-entry.ts'
import type { CompanyId, UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type AuditEntry, type Caller, changeAs } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import type { Permission } from '../../tenancy/policy.ts'
import { lockSession } from '../../tenancy/sign-in/session-store.ts'
import type { Role } from '../../tenancy/member/user-store.ts'
import { canSeeAll, canSeeWorkspace, type Viewer } from '../../tenancy/viewer.ts'
import { refuseViewer } from '../auth/require-session.ts'

/** Who made a change. */
type AuditActor = {
  companyId: CompanyId
  userId: UserId | null
  email: string
  role: Role | null
  address: string
  traceId: string
  /** The access that the change requires, checked again before the change. Absent without a session. */
  access?: { viewer: Viewer; permission: Permission }
}

/** A signed-in member. */
export type SessionActor = AuditActor & { userId: UserId; role: Role }

type AuditDeps = { db: Queryable; clock: Clock }

export function actorOf(request: FastifyRequest): SessionActor {
  const { viewer, routeOptions } = request
  const { permission } = routeOptions.config
  assert(permission, 'a route with a session must name a permission')
  return { ...uncheckedActorOf(request), access: { viewer, permission } }
}

/** For an entry about what was denied to the member. They may have lost their access by then. */
function uncheckedActorOf({ viewer, clientAddress, id }: FastifyRequest): SessionActor {
  const { companyId, userId, email, role } = viewer
  return { companyId, userId, email, role, address: clientAddress, traceId: id }
}

/** The member who sent the request, for operations that keys can call too. */
export function memberCaller({ clock }: Pick<AuditDeps, 'clock'>, request: FastifyRequest): Caller {
  const { viewer } = request
  return {
    id: viewer.userId,
    companyId: viewer.companyId,
    via: `in the dashboard by ${viewer.email}`,
    span: request.span,
    canSeeWorkspace: (id) => canSeeWorkspace(viewer, id),
    lock: async (trx) => {
      const current = await lockForChange(trx, actorOf(request), clock())
      return (entry) => writeAuditEntry(trx, originOf(current), entry, clock())
    },
    record: recorderOf(originOf(uncheckedActorOf(request)), clock),
  }
}

/**
 * `changeAs` for what only members can do, and for changes before a session exists. `current` is the actor with
 * their current role.
 */
export async function audited<T, Actor extends AuditActor>(
  { db, clock }: AuditDeps,
  actor: Actor,
  change: (trx: Queryable, record: (entry: AuditEntry) => void, current: Actor) => Promise<T>,
): Promise<T> {
  let current = actor
  const lock: Caller['lock'] = async (trx) => {
    current = await lockForChange(trx, actor, clock())
    return (entry) => writeAuditEntry(trx, originOf(current), entry, clock())
  }
  return await changeAs({ lock }, db, (trx, record) => change(trx, record, current))
}

/**
 * Locks the company and checks again that the session is valid and that the member still has the role and the
 * workspaces, because the request may have waited for its body, a slot or this lock. Every operation that
 * revokes access takes the same lock, so once it returns, no change by that member can commit. Call it first
 * in the transaction: every other lock comes after the company's. Returns the actor with their current role.
 */
async function lockForChange<Actor extends AuditActor>(
  trx: Queryable,
  actor: Actor,
  nowMs: number,
): Promise<Actor> {
  const { companyId, access, address } = actor
  await lockCompany(trx, companyId)
  if (!access) return actor
  const { viewer, permission } = access
  const current = await lockSession(trx, viewer.sessionId, nowMs)
  if (!current) throw new ApiError('not_signed_in')
  refuseViewer(current, permission, address)
  if (canSeeAll(current, viewer)) return { ...actor, role: current.role }
  throw new ApiError('insufficient_role', {
    message: 'Your workspaces changed during this request. Send it again.',
  })
}

function originOf({ companyId, userId, email, role, address, traceId }: AuditActor): AuditOrigin {
  const actor = { ...(userId !== null && { id: userId }), email, ...(role !== null && { role }) }
  return { companyId, category: 'dashboard', actor, details: { address }, traceId }
}
