import { formatBytes, formatCount } from '../../../parts/text/format.ts'
import { pluralize } from '../../../parts/text/pluralize.ts'

/** The part of an audit entry that the sentence uses. */
type ActivityEvent = {
  action: string
  resource: Record<string, unknown> | null
  metadata: Record<string, unknown> | null
}

/** Resolves ids to names that the event doesn't contain. */
type Names = { workspace: (id: string) => string; webhook: (id: string) => string }

/** What the actor did, to follow their name. An unknown action is shown by its code. */
export function activityText(event: ActivityEvent, names: Names): string {
  const facts = factsOf(event, names)
  return ACTIVITY_TEXTS[event.action]?.(facts) ?? `performed ${event.action}`
}

type Facts = {
  text: (field: string) => string
  count: (field: string) => number
  is: (field: string) => boolean
  before: string
  after: string
  /** A field before and after the change, or null if it didn't change. */
  changed: (field: string) => { before: string; after: string } | null
  /** What the change of the rule for second factors did, or null. */
  factorRule: string | null
  workspace: string
  /** The names of all workspaces that the entry lists. */
  workspaces: string
  webhook: string
}

function factsOf({ resource, metadata }: ActivityEvent, names: Names): Facts {
  const facts = metadata ?? {}
  const workspaceId = facts.workspaceId ?? resource?.id
  return {
    text: (field) => textOf(facts[field]),
    count: (field) => (typeof facts[field] === 'number' ? facts[field] : 0),
    is: (field) => facts[field] === true,
    before: nameIn(facts.before),
    after: nameIn(facts.after),
    changed: (field) => {
      const [before, after] = [fieldIn(facts.before, field), fieldIn(facts.after, field)]
      return before === after ? null : { before, after }
    },
    factorRule: factorRuleOf(facts.after),
    workspace: typeof workspaceId === 'string' ? names.workspace(workspaceId) : 'a workspace',
    workspaces: stringsIn(facts.workspaceIds).map(names.workspace).join(', '),
    webhook: textOf(facts.url) || names.webhook(textOf(resource?.id)),
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function stringsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.map(textOf) : []
}

function nameIn(value: unknown): string {
  const fields = ['name', 'role', 'url', 'plan'].map((field) => fieldIn(value, field))
  return fields.find((text) => text !== '') ?? ''
}

function fieldIn(value: unknown, field: string): string {
  if (typeof value !== 'object' || value === null) return ''
  return textOf((value as Record<string, unknown>)[field]) // A missing field is undefined.
}

/** Groups can also take a role away, or change only the workspaces. */
function groupChangeText(before: string, after: string): string {
  return before === after
    ? 'had their workspaces changed by their groups'
    : `had their role changed from ${lower(before)} to ${lower(after)} by their groups`
}

function factorRuleOf(after: unknown): string | null {
  if (typeof after !== 'object' || after === null || !('requiresSecondFactor' in after)) return null
  return after.requiresSecondFactor === true
    ? 'required a second factor of all members'
    : 'made the second factor optional'
}

const ACTIVITY_TEXTS: Record<string, (facts: Facts) => string> = {
  LOGIN_SUCCEEDED: ({ text, count }) =>
    text('secondFactor') === 'RECOVERY_CODE'
      ? `signed in with a recovery code, ${count('recoveryCodesLeft')} left`
      : text('via') === 'OPENID_CONNECT'
        ? 'signed in with OpenID Connect'
        : 'signed in',
  LOGIN_FAILED: ({ text, count }) =>
    text('via') === 'OPENID_CONNECT'
      ? 'could not sign in with OpenID Connect, because the account is linked to another person'
      : text('reason') === 'ADDRESS_NOT_ALLOWED'
        ? 'entered the right password at an address outside the allowlist, and was refused'
        : count('attempts') > 1
          ? `entered a wrong password ${pluralize(count('attempts'), 'time')}`
          : 'entered a wrong password',
  LOGIN_THROTTLED: ({ count }) =>
    `had ${pluralize(count('attempts'), 'sign-in attempt')} refused after too many wrong attempts`,
  LOGOUT: () => 'signed out',
  SESSIONS_ENDED: ({ count }) => `ended ${pluralize(count('count'), 'session')}`,
  PASSWORD_CHANGED: ({ count }) =>
    `changed their password and ended ${pluralize(count('endedSessions'), 'other session')}`,
  PASSWORD_RESET_REQUESTED: ({ text }) =>
    text('email') === '' ? 'requested a reset link' : `created a reset link for ${text('email')}`,
  PASSWORD_RESET: () => 'set a new password with a reset link',
  SECOND_FACTOR_REQUESTED: () => 'was asked for the second factor',
  SECOND_FACTOR_FAILED: ({ count }) =>
    count('attempts') > 1
      ? `entered a wrong second factor ${pluralize(count('attempts'), 'time')}`
      : 'entered a wrong second factor',
  SECOND_FACTOR_ENABLED: ({ count }) =>
    `turned on their second factor and ended ${pluralize(count('endedSessions'), 'other session')}`,
  SECOND_FACTOR_DISABLED: () => 'turned off their second factor',
  NOTICE_MAIL_CHANGED: () => 'changed which notices they get by mail',
  SECOND_FACTOR_RESET: ({ text }) => `reset the second factor of ${text('email')}`,
  RECOVERY_CODES_CREATED: () => 'created new recovery codes',
  IDENTITY_LINKED: ({ text }) => `linked their account to ${text('issuer')}`,
  IDENTITY_UNLINKED: ({ text }) => `unlinked their account from ${text('issuer')}`,
  GROUP_MAPPED: ({ text }) =>
    `let the group ${text('group')} grant the role ${lower(text('role'))}`,
  GROUP_UNMAPPED: ({ text }) => `stopped the group ${text('group')} from granting a role`,
  MEMBER_INVITED: ({ text }) => `invited ${text('email')} as ${lower(text('role'))}`,
  INVITATION_WITHDRAWN: ({ text }) => `withdrew the invitation for ${text('email')}`,
  MEMBER_JOINED: ({ text }) =>
    text('via') === 'GROUP'
      ? `joined through a group as ${lower(text('role'))}`
      : `joined as ${lower(text('role'))}`,
  MEMBER_CHANGED: ({ text, before, after }) =>
    text('via') === 'GROUP'
      ? groupChangeText(before, after)
      : before === after
        ? `changed the workspaces of ${text('email')}`
        : `changed the role of ${text('email')} from ${lower(before)} to ${lower(after)}`,
  MEMBER_REMOVED: ({ text }) =>
    text('via') === 'GROUP'
      ? `was removed, because groups no longer grant the role ${lower(text('role'))}`
      : `removed ${text('email')} (${lower(text('role'))})`,
  COMPANY_CHANGED: ({ before, after, factorRule }) =>
    factorRule ?? `renamed the company from ${before} to ${after}`,
  PLAN_CHANGED: ({ before, after }) => `changed the plan from ${before} to ${after}`,
  ALLOWLIST_CHANGED: ({ is }) =>
    `changed the IP allowlist${is('leavesOutCaller') ? ', excluding their own address' : ''}`,
  WORKSPACE_CREATED: ({ text }) => `created the workspace ${text('name')}`,
  WORKSPACE_CHANGED: ({ before, after }) => `renamed the workspace ${before} to ${after}`,
  PROJECT_CREATED: ({ text, workspace }) => `created the project ${text('name')} in ${workspace}`,
  PROJECT_CHANGED: ({ before, after }) => `renamed the project ${before} to ${after}`,
  KEY_CREATED: ({ text, workspace }) =>
    `created the ${text('scope') === 'COMPANY' ? 'company ' : ''}key ${keyOf(text)}${text('scope') === 'COMPANY' ? '' : ` for ${workspace}`}`,
  KEY_CHANGED: ({ before, after }) => `renamed the key ${before} to ${after}`,
  KEY_ROTATED: ({ text, count }) =>
    `rotated the key ${keyOf(text)}; the old one ${count('graceHours') === 0 ? 'ended immediately' : `works for ${pluralize(count('graceHours'), 'hour')}`}`,
  KEY_REVOKED: ({ text }) => `revoked the key ${keyOf(text)}`,
  WEBHOOK_CREATED: ({ text, workspace }) => `created a webhook to ${text('url')} in ${workspace}`,
  WEBHOOK_CHANGED: ({ changed, webhook }) => {
    const url = changed('url')
    return url
      ? `changed the URL of a webhook from ${url.before} to ${url.after}`
      : `changed the webhook ${webhook}`
  },
  WEBHOOK_DELETED: ({ text }) => `deleted the webhook to ${text('url')}`,
  WEBHOOK_ENABLED: ({ webhook }) => `enabled the webhook ${webhook}`,
  WEBHOOK_DISABLED: ({ text, webhook }) =>
    `disabled the webhook ${webhook}${text('plan') === '' ? '' : ` by changing the plan to ${text('plan')}`}${text('reason') === '' ? '' : `: ${text('reason')}`}`,
  WEBHOOK_SECRET_ROTATED: ({ is, webhook }) =>
    is('overlapEnded')
      ? `ended the old secret of the webhook ${webhook}`
      : `rotated the secret of the webhook ${webhook}`,
  WEBHOOK_TESTED: ({ webhook }) => `sent a test to the webhook ${webhook}`,
  WEBHOOK_REDELIVERED: ({ text, count, webhook }) =>
    count('count') > 0
      ? `retried ${formatCount(count('count'))} ${text('status') === 'FAILED' ? 'failed' : 'waiting'} ${count('count') === 1 ? 'delivery' : 'deliveries'} of the webhook ${webhook}`
      : text('deliveryId') === ''
        ? `resent missed events to the webhook ${webhook}`
        : `redelivered an event to the webhook ${webhook}`,
  VIEW_CREATED: ({ text }) => `saved the view ${text('name')}`,
  VIEW_CHANGED: ({ after }) => `changed the view ${after}`,
  VIEW_DELETED: ({ text }) => `deleted the view ${text('name')}`,
  EXPORT_REQUESTED: ({ text }) => `requested a ${text('format')} export`,
  EXPORT_RERUN: ({ text }) => `reran a ${text('format')} export`,
  EXPORT_CANCELED: ({ count }) => `canceled an export after ${pluralize(count('rows'), 'row')}`,
  EXPORT_DOWNLOAD_STARTED: ({ text }) => `started downloading a ${text('format')} export`,
  EXPORT_DOWNLOAD_REFUSED: ({ text, count }) =>
    `was refused the download of an export${count('attempts') > 1 ? ` ${pluralize(count('attempts'), 'time')}` : ''} (${text('code')})`,
  EXPORT_DOWNLOAD_CUT: ({ count, text }) =>
    `had an export download cut short after ${pluralize(count('rows'), 'row')} (${text('reason')})`,
  EXPORT_STORED: ({ count }) =>
    `stored a scheduled export: ${pluralize(count('rows'), 'row')}, ${formatBytes(count('bytes'))}`,
  EXPORT_FAILED: ({ text }) => `could not complete an export (${text('errorCode')})`,
  EXPORT_EXPIRED: () => 'ended an export that was not downloaded within seven days',
  EXPORT_DOWNLOADED: ({ count, is }) =>
    `downloaded an export: ${pluralize(count('rows'), 'row')}, ${formatBytes(count('bytes'))}${is('truncated') ? ', truncated at the row limit' : ''}`,
  EXPORT_TEMPLATE_CREATED: ({ text }) => `saved the export template ${text('name')}`,
  EXPORT_TEMPLATE_CHANGED: ({ after }) => `changed the export template ${after}`,
  EXPORT_TEMPLATE_DELETED: ({ text }) => `deleted the export template ${text('name')}`,
  EXPORT_SCHEDULE_SET: ({ text }) =>
    `scheduled the export template ${text('name')} ${text('after').toLowerCase()}`,
  EXPORT_SCHEDULE_STOPPED: ({ text }) =>
    `stopped the schedule of the export template ${text('name')}`,
  VERIFY_STARTED: ({ count, workspace }) =>
    `started verifying ${workspace} (${pluralize(count('events'), 'event')})`,
  VERIFY_CANCELED: ({ workspace }) => `canceled the verification of ${workspace}`,
  VERIFY_FINISHED: ({ text, count, workspace }) =>
    text('verdict') === ''
      ? `verified ${pluralize(count('workspaces'), 'workspace')}: every chain is intact`
      : `verified ${workspace}: ${text('verdict')}`,
  ARCHIVE_FAILED: ({ workspaces }) => `could not archive events of ${workspaces}`,
  LEDGER_FORK_ACCEPTED: ({ count, workspace }) =>
    `accepted another history of ${workspace}: ${pluralize(count('acceptedSize'), 'event')} instead of the ${formatCount(count('signedSize'))} that were signed`,
  SIGNING_KEY_CHANGED: ({ text }) =>
    `changed the key that signs checkpoints to ${text('publicKey')}`,
}

function lower(role: string): string {
  return role.toLowerCase()
}

function keyOf(text: Facts['text']): string {
  return `${text('name')} (${text('prefix')}…)`
}
