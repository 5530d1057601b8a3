import type { FastifyRequest } from 'fastify'
import { ApiError } from '../../../errors.ts'
import { newId, type CompanyId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { acceptLink } from '../../../tenancy/member/accept-link.ts'
import type { AuditEntry } from '../../../tenancy/caller.ts'
import { findMappedGrants } from '../../../tenancy/identity/group-mapping-store.ts'
import {
  decideEntry,
  type Entry,
  type EntryRefusal,
  type KnownPerson,
} from '../../../tenancy/identity/identity-entry.ts'
import {
  findAddressAccount,
  findLinkedAccount,
  lockMemberAccount,
  type MemberAccount,
} from '../../../tenancy/identity/identity-store.ts'
import { findLink, refuseTooManyMembers } from '../../../tenancy/member/one-time-link-store.ts'
import { grantWorkspaces, insertUser } from '../../../tenancy/member/user-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { audited } from '../member-caller.ts'
import { requestSecondFactor, type SignIn, signIn } from '../session/open-session.ts'
import { linkAccount } from './link-account.ts'
import { updateGroupRole } from './update-group-role.ts'

type EnterDeps = Pick<DashboardDeps, 'db' | 'clock' | 'cookie' | 'slots' | 'logger'>

/** A person with an address that the identity provider has verified. */
type VerifiedPerson = {
  issuer: string
  subject: string
  email: string
  groups: readonly string[]
  /** The invitation that they come from. */
  linkToken: string | null
}

/** The person is who they say they are, but can't sign in. */
export class EntryRefusedError extends Error {
  readonly reason: EntryRefusal | 'access_removed'
  readonly account: MemberAccount | null

  constructor(reason: EntryRefusedError['reason'], account: MemberAccount | null) {
    super(`The sign-in was refused: ${reason}.`)
    this.reason = reason
    this.account = account
  }
}

/** Rolls back an attempt, because the account changed meanwhile. */
class EntryChangedError extends Error {}

function nullIfChanged(error: unknown): null {
  if (error instanceof EntryChangedError) return null
  throw error
}

/** Another request can change the account between the decision and the lock. */
const TRIES_MAX = 3

/**
 * Signs a person in, and links, creates or changes their account as the sign-in requires. The account decides
 * which company to lock, so it is read before the lock and again after it.
 */
export async function enterAccount(
  deps: EnterDeps,
  request: FastifyRequest,
  person: VerifiedPerson,
): Promise<SignIn> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const entry = decideEntry(await readPerson(deps, deps.db, person))
    if (entry.kind === 'refused') throw new EntryRefusedError(entry.reason, entry.account)
    const result = await deps.slots.run(companyIn(entry), () =>
      audited(deps, actorIn(entry, person, request), async (trx, record) => {
        const current = decideEntry(await readPerson(deps, trx, person))
        if (!isSameEntry(entry, current)) throw new EntryChangedError()
        return await enterAs(deps, trx, { request, person, entry: current, record })
      }).catch(nullIfChanged),
    )
    if (result === 'access_removed') throw new EntryRefusedError(result, accountIn(entry))
    if (result) return result
  }
  throw new ApiError('overloaded')
}

async function readPerson(
  { clock }: Pick<EnterDeps, 'clock'>,
  db: Queryable,
  { issuer, subject, email, groups, linkToken }: VerifiedPerson,
): Promise<KnownPerson> {
  const link = linkToken === null ? null : await findLink(db, linkToken, clock())
  return {
    subject,
    email,
    linked: await findLinkedAccount(db, { issuer, subject }),
    holder: await findAddressAccount(db, { issuer, email }),
    mapped: await findMappedGrants(db, groups),
    ...(linkToken !== null && { invitation: link?.kind === 'INVITATION' ? link : null }),
  }
}

type AllowedEntry = Exclude<Entry, { kind: 'refused' }>
type EntryParts = {
  request: FastifyRequest
  person: VerifiedPerson
  entry: AllowedEntry
  record: (entry: AuditEntry) => void
}

/** Throws an `EntryChangedError` if the account changed meanwhile. */
async function enterAs(
  deps: EnterDeps,
  trx: Queryable,
  { request, person, entry, record }: EntryParts,
): Promise<SignIn | 'access_removed'> {
  const { issuer, groups } = person
  const userId = await accountFor(deps, trx, { person, entry, record })
  if (userId === null || !(await lockMemberAccount(trx, userId))) throw new EntryChangedError()
  const member = { userId, companyId: companyIn(entry) }
  const step = { userId, record, via: 'OPENID_CONNECT' } as const
  if (entry.kind === 'link') {
    // Without the second factor, anyone with the member's address at the provider could link themselves.
    const challenged = await requestSecondFactor(deps, trx, request, { ...step, person })
    if (challenged) return challenged
  }
  if (entry.kind !== 'known' && !(await linkAccount(deps, trx, { member, person, record }))) {
    throw new EntryChangedError()
  }
  const mapped = await findMappedGrants(trx, groups)
  const desired = mapped.get(member.companyId) ?? null
  const isNew = entry.kind === 'mapped'
  const remains = await updateGroupRole(deps, trx, { member, issuer, desired, isNew, record })
  if (!remains) return 'access_removed'
  return await signIn(deps, trx, request, step)
}

/** The account to enter, which is created if the person has none. */
async function accountFor(
  { clock }: Pick<EnterDeps, 'clock'>,
  trx: Queryable,
  { person, entry, record }: Omit<EntryParts, 'request'>,
): Promise<MemberAccount['userId'] | null> {
  if (entry.kind === 'known' || entry.kind === 'link') return entry.account.userId
  const { companyId, grant } = entry
  const joined = (userId: MemberAccount['userId']) => {
    const metadata = { role: grant.role, via: entry.kind === 'mapped' ? 'GROUP' : 'OPENID_CONNECT' }
    record({ action: 'MEMBER_JOINED', resource: { type: 'user', id: userId }, metadata })
    return userId
  }
  if (entry.kind === 'invited') {
    const options = { token: person.linkToken ?? '', passwordHash: null, nowMs: clock() }
    const accepted = await acceptLink(trx, options)
    return accepted && joined(accepted.userId)
  }
  await refuseTooManyMembers(trx, companyId)
  const userId = newId<'user'>(clock())
  const { email } = person
  await insertUser(trx, { id: userId, companyId, email, passwordHash: null, role: grant.role })
  await grantWorkspaces(trx, { companyId, userId, workspaceIds: grant.workspaceIds ?? [] })
  return joined(userId)
}

function actorIn(entry: AllowedEntry, { email }: VerifiedPerson, request: FastifyRequest) {
  const { clientAddress: address, id: traceId } = request
  const account = accountIn(entry)
  const known = account ?? { companyId: companyIn(entry), userId: null, email, role: null }
  return { ...known, address, traceId }
}

function accountIn(entry: AllowedEntry): MemberAccount | null {
  return 'account' in entry ? entry.account : null
}

function companyIn(entry: AllowedEntry): CompanyId {
  return 'account' in entry ? entry.account.companyId : entry.companyId
}

function isSameEntry(before: AllowedEntry, now: Entry): now is AllowedEntry {
  if (now.kind !== before.kind || companyIn(now) !== companyIn(before)) return false
  return accountIn(now)?.userId === accountIn(before)?.userId
}
