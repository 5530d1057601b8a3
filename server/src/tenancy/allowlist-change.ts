import { ApiError } from '../errors.ts'
import { compileRanges, isAddressAllowed, isInRanges, parseCidr } from './allowlist.ts'
import type { Allowlist } from './company-store.ts'
import { type Plan, PLAN_TERMS } from './plans.ts'

/** Normalizes the entries and removes duplicates. Throws an error that lists the invalid ones. */
export function readEntries(texts: readonly string[]): string[] {
  const details = texts.flatMap((text, index) =>
    parseCidr(text) === null ? [{ path: `/entries/${index}`, message: INVALID_ENTRY }] : [],
  )
  const [first] = details
  if (first) {
    const message = `The request does not match the schema: ${first.path} ${first.message}.`
    throw new ApiError('invalid_request', { message, details: details.slice(0, DETAILS_MAX) })
  }
  return [...new Set(texts.map(parseCidr).filter((entry) => entry !== null))]
}

const INVALID_ENTRY = 'must be an IP address or a CIDR range, such as 203.0.113.0/24'
const DETAILS_MAX = 20

/**
 * Explains how saving this list would lock out the member's own address, or returns null. Unless the list
 * applies to all calls, it applies only to webhook changes, which need a plan with webhooks. An empty list
 * then needs no confirmation.
 */
export function describeLockout(
  address: string,
  { entries, forAllCalls }: Allowlist,
  plan: Plan,
): string | null {
  if (isInRanges(address, compileRanges(entries))) return null
  const consequence = forAllCalls
    ? 'every call with a key from this address would be refused'
    : 'a key could not change webhooks from this address'
  const isEnforced = forAllCalls || (PLAN_TERMS[plan].hasWebhooks && entries.length > 0)
  if (!isEnforced) return null
  return `The list does not contain your current address, ${address}: ${consequence}. To continue anyway, send "confirmAddressLeftOut": true.`
}

/** Members can't lock themselves out of the dashboard, where they could undo it. */
export function refuseOwnLockout(address: string, { entries, forDashboard }: Allowlist): void {
  if (!forDashboard || isAddressAllowed(address, entries)) return
  throw new ApiError('conflict', {
    message: `The list does not contain your current address, ${address}, so you could no longer use the dashboard. Add your address, or don't apply the list to the dashboard.`,
  })
}
