import { DAY_MS } from '../platform/time/time-units.ts'

export const PLANS = ['FREE', 'STARTER', 'PRO', 'ENTERPRISE'] as const
export type Plan = (typeof PLANS)[number]

type PlanTerms = {
  /** Null if the plan has no exports. */
  exportRowsMax: number | null
  hasWebhooks: boolean
  hotDays: number
  /** Events per second per key, or null for no limit. */
  eventsPerSecondMax: number | null
  /** Bytes of events per company and day, or null for no limit. */
  bytesPerDayMax: number | null
}

const GB = 1e9

/** The only place that defines what each plan includes. */
export const PLAN_TERMS: Record<Plan, PlanTerms> = {
  FREE: {
    exportRowsMax: null,
    hasWebhooks: false,
    hotDays: 7,
    eventsPerSecondMax: 50,
    bytesPerDayMax: 8 * GB,
  },
  STARTER: {
    exportRowsMax: 50_000,
    hasWebhooks: false,
    hotDays: 30,
    eventsPerSecondMax: 200,
    bytesPerDayMax: 32 * GB,
  },
  PRO: {
    exportRowsMax: 1_000_000,
    hasWebhooks: true,
    hotDays: 90,
    eventsPerSecondMax: 2_000,
    bytesPerDayMax: 320 * GB,
  },
  ENTERPRISE: {
    exportRowsMax: 10_000_000,
    hasWebhooks: true,
    hotDays: 365,
    eventsPerSecondMax: null,
    bytesPerDayMax: null,
  },
}

/** Whether the plan has exports, and so access to the archive. */
export function hasExports(plan: Plan): boolean {
  return PLAN_TERMS[plan].exportRowsMax !== null
}

/** The start of the hot time: events received before it are no longer hot. */
export function hotSinceMsOf(plan: Plan, nowMs: number): number {
  return nowMs - PLAN_TERMS[plan].hotDays * DAY_MS
}

/** Limits on what a company can create, on every plan. */
export const COMPANY_BOUNDS = {
  workspacesMax: 100,
  projectsPerWorkspaceMax: 100,
  webhooksPerWorkspaceMax: 50,
  keysPerWorkspaceMax: 100,
  newKeysPerDayMax: 1_000,
  viewsMax: 500,
  exportTemplatesMax: 200,
  exportSchedulesMax: 20,
  openExportsMax: 1_000,
  membersMax: 500,
} as const

export function isPlan(text: string): text is Plan {
  return PLANS.some((plan) => plan === text)
}

/** Whether `plan` is `least` or higher. */
export function planReaches(plan: Plan, least: Plan): boolean {
  return PLANS.indexOf(plan) >= PLANS.indexOf(least)
}
