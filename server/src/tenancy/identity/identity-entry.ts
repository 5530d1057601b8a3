import type { CompanyId } from '../../platform/id.ts'
import type { MemberAccount } from './identity-store.ts'
import type { MemberGrant } from '../member/member-store.ts'
import type { OpenLink } from '../member/one-time-link-store.ts'

/** Why a person can't sign in here, although they signed in at the identity provider. */
export type EntryRefusal =
  /** The address has an account that is linked to another person at the provider. */
  | 'other_account'
  /** The invitation is for another address. */
  | 'other_address'
  /** The invitation was used, withdrawn or has expired. */
  | 'invitation_over'
  /** The person has an account already, so they can't accept an invitation. */
  | 'has_account'
  /** No account, no invitation, and no group that grants a role. */
  | 'no_account'
  /** Their groups grant roles in several companies, and an account belongs to one. */
  | 'several_companies'

type Invitation = Extract<OpenLink, { kind: 'INVITATION' }>

/** What the database knows about a person at the provider. */
export type KnownPerson = {
  subject: string
  email: string
  /** The account that is linked to the subject. */
  linked: MemberAccount | null
  /** The account with the address, and the subject that it is linked to. */
  holder: (MemberAccount & { subject: string | null }) | null
  /** Absent if the person doesn't come from an invitation. Null if the invitation is no longer valid. */
  invitation?: Invitation | null
  /** What their groups grant, by company. */
  mapped: ReadonlyMap<CompanyId, MemberGrant>
}

export type Entry =
  | { kind: 'known'; account: MemberAccount }
  | { kind: 'link'; account: MemberAccount }
  | { kind: 'invited'; companyId: CompanyId; grant: MemberGrant }
  | { kind: 'mapped'; companyId: CompanyId; grant: MemberGrant }
  | { kind: 'refused'; reason: EntryRefusal; account: MemberAccount | null }

/**
 * Decides which account a person enters. Once an account is linked, only the subject counts: people and
 * addresses come and go at the provider, and an address can be given to someone else.
 */
export function decideEntry(person: KnownPerson): Entry {
  const { holder, invitation } = person
  // The account can be linked between the two reads.
  const linked = person.linked ?? (holder?.subject === person.subject ? holder : null)
  const account = linked ?? holder
  if (account && invitation !== undefined) return refusedEntry('has_account', account)
  if (linked) return { kind: 'known', account: linked }
  if (holder) {
    return holder.subject === null
      ? { kind: 'link', account: holder }
      : refusedEntry('other_account', holder)
  }
  if (invitation !== undefined) return acceptInvitation(person, invitation)
  const [first, ...others] = person.mapped
  if (!first) return refusedEntry('no_account')
  if (others.length > 0) return refusedEntry('several_companies')
  return { kind: 'mapped', companyId: first[0], grant: first[1] }
}

function acceptInvitation({ email }: KnownPerson, invitation: Invitation | null): Entry {
  if (!invitation) return refusedEntry('invitation_over')
  if (invitation.email !== email) return refusedEntry('other_address')
  const { companyId, role, workspaceIds } = invitation
  return { kind: 'invited', companyId, grant: { role, workspaceIds } }
}

function refusedEntry(reason: EntryRefusal, account: MemberAccount | null = null): Entry {
  return { kind: 'refused', reason, account }
}
