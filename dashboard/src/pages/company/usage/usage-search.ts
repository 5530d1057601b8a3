import { type ActivitySearch, readActivitySearch } from '../activity/activity-search.ts'

export const USAGE_DAYS = [7, 30, 90, 365] as const
export type UsageDays = (typeof USAGE_DAYS)[number]

/** The search parameters of the company pages. */
export type CompanySearch = ActivitySearch & { days?: UsageDays; of?: 'bytes' }

export function readCompanySearch(search: Record<string, unknown>): CompanySearch {
  const days = USAGE_DAYS.find((count) => String(count) === String(search.days))
  return {
    ...readActivitySearch(search),
    ...(days !== undefined && { days }),
    ...(search.of === 'bytes' && { of: search.of }),
  }
}
