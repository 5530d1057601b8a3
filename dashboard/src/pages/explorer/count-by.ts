/** The fields that the histogram and the facets can group by. */
export const COUNT_BY = [
  'category',
  'action',
  'actorEmail',
  'actorId',
  'resourceType',
  'projectId',
] as const
export type CountBy = (typeof COUNT_BY)[number]

export function readCountBy(text: string | undefined): CountBy | null {
  return COUNT_BY.find((field) => field === text) ?? null
}

/** Events without a value are among the others. Every event has a category and an action. */
export function othersText(by: CountBy): string {
  return by === 'category' || by === 'action' ? 'Other' : 'Other or none'
}
