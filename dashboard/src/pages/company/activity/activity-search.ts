import { type Range, RANGES } from '../../../query/time-window.ts'

/** What an entry is about, by the type of its resource. */
export const SUBJECTS = {
  session: 'Sign-ins and sessions',
  user: 'Members and passwords',
  invitation: 'Invitations',
  key: 'Keys',
  webhook: 'Webhooks',
  export_job: 'Exports',
  export_template: 'Export templates',
  explorer_view: 'Views',
  workspace: 'Workspaces and verification',
  project: 'Projects',
  company: 'Company, plan and archive',
} as const
type Subject = keyof typeof SUBJECTS

export const SOURCES = { dashboard: 'Dashboard', api: 'API' } as const
type Source = keyof typeof SOURCES

/** The filters of the activity page. */
export type ActivitySearch = {
  subject?: Subject
  source?: Source
  /** An email address, or the id of a key, `operator` or `annals`. */
  actor?: string
  range?: Range
}

export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const { actor } = search
  const subject = keyIn(SUBJECTS, search.subject)
  const source = keyIn(SOURCES, search.source)
  const range = keyIn(RANGES, search.range)
  return {
    ...(subject && { subject }),
    ...(source && { source }),
    ...(typeof actor === 'string' && actor !== '' && { actor }),
    ...(range && { range }),
  }
}

/** The filters as parameters of the event list. `nowMs` is where the range ends. */
export function activityQuery(search: ActivitySearch, nowMs: number) {
  const { subject, source, actor, range } = search
  return {
    ...(subject && { resourceType: [subject] }),
    ...(source && { category: [source] }),
    ...(actor && (actor.includes('@') ? { actorEmail: [actor] } : { actorId: [actor] })),
    ...(range && { from: new Date(nowMs - RANGES[range].spanMs).toISOString() }),
  }
}

function keyIn<Names extends object>(names: Names, value: unknown): keyof Names | undefined {
  return Object.keys(names).find((name): name is keyof Names & string => name === value)
}
