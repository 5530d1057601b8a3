import { ApiError } from '../../../errors.ts'
import { isMailAddress, quoteNameForMail } from '../../../tenancy/member/mail-address.ts'
import { readGrant } from '../../../tenancy/member/member-rules.ts'
import * as linkStore from '../../../tenancy/member/one-time-link-store.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { refuseRole } from '../../auth/require-session.ts'
import { TokenBuckets } from '../../auth/token-bucket.ts'
import { defineRoute } from '../../define-route.ts'
import { InvitationInput, NewInvitation } from '../../schema/dashboard/member.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { linkText } from '../link-text.ts'

type Deps = Pick<
  DashboardDeps,
  'db' | 'clock' | 'monotonic' | 'publicUrl' | 'mailer' | 'hasRateLimits'
>

const COMPANIES_MAX = 10_000
/** Per company: enough to invite a whole department at once, but too few to flood strangers with mail. */
const INVITATIONS = { perSecond: 1 / 30, capacity: 100, cost: 1 } as const

/** POST /dashboard/invitations: the only response that contains the link. */
export const createInvitation = defineRoute({
  method: 'POST',
  path: '/dashboard/invitations',
  member: 'members.manage',
  summary: 'Invite a member',
  description:
    'Creates a one-time link, and sends it by email if the operator has set up email. A new invitation replaces the previous one for the same address. If the address belongs to an account in another company, the response is the same, but using the link returns 409. Only an OWNER can invite an OWNER or replace the invitation of one.',
  body: InvitationInput,
  errors: ['not_found', 'conflict'],
  response: { 201: NewInvitation },
  handle: (deps: Deps) => {
    const buckets = new TokenBuckets({ clock: deps.monotonic, bucketsMax: COMPANIES_MAX })
    return async (request) => {
      const { viewer, body, server } = request
      const email = readAddress(body.email)
      if (deps.hasRateLimits) refuseFlood(buckets, viewer)
      const { id, token, expiresAt } = await audited(
        deps,
        actorOf(request),
        async (trx, record, self) => {
          if (body.role === 'OWNER') refuseRole(self, 'owners.manage')
          const options = { role: body.role, workspaceIds: body.workspaceIds ?? [] }
          const grant = await readGrant(trx, self.companyId, options)
          const created = await linkStore.insertInvitation(trx, {
            companyId: self.companyId,
            email,
            role: grant.role,
            workspaceIds: grant.workspaceIds ?? [],
            createdBy: self.userId,
            nowMs: deps.clock(),
          })
          // Only now is it known whether this replaces an owner's invitation. Throwing rolls that back.
          if (created.replacedRole === 'OWNER') refuseRole(self, 'owners.manage')
          record({
            action: 'MEMBER_INVITED',
            resource: { type: 'invitation', id: created.id },
            metadata: { email, ...grant },
          })
          return created
        },
      )
      const link = linkText(deps, server, token)
      const isMailed = deps.mailer.isConfigured
      deps.mailer.sendMail(invitationMail(email, viewer, link))
      const answer = { id, link, expiresAt: expiresAt.toISOString(), isMailed }
      return answer
    }
  },
})

/** Stricter than the schema's format, which events use too, because we send mail to this address. */
function readAddress(text: string): string {
  if (isMailAddress(text)) return text.toLowerCase()
  const fault = 'must be one email address'
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /email ${fault}.`,
    details: [{ path: '/email', message: fault }],
  })
}

function refuseFlood(buckets: TokenBuckets, { companyId }: Viewer): void {
  const { isAllowed, retryAfterSeconds } = buckets.take(companyId, INVITATIONS)
  if (isAllowed) return
  throw new ApiError('rate_limited', {
    message: 'This company sent too many invitations. Try again later.',
    retryAfterSeconds,
  })
}

function invitationMail(to: string, { email, companyName }: Viewer, link: string) {
  const name = quoteNameForMail(companyName)
  return {
    to,
    subject: `You're invited to ${name} on Annals`,
    text: [
      `${email} invited you to the audit log of ${name}. To accept, choose a password:`,
      '',
      link,
      '',
      'The link works once and expires in seven days.',
      '',
    ].join('\n'),
  }
}
