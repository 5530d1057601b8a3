import type { Event } from '../../../../../sdk/src/resource/types.ts'
import type { Column } from '../../output/table.ts'

/** The ID stays, because other commands need it. */
export const EVENT_TABLE: readonly Column<Event>[] = [
  { title: 'TIME', value: ({ timestamp }) => timestamp, isWhole: true, widthMin: 24, rank: 5 },
  { title: 'SEQ', value: ({ seq }) => seq, isRight: true, isWhole: true, widthMin: 6, rank: 3 },
  { title: 'CATEGORY', value: ({ category }) => category, widthMin: 12, rank: 4 },
  { title: 'ACTION', value: ({ action }) => action, widthMin: 20, rank: 6 },
  {
    title: 'ACTOR',
    value: ({ actor }) => actor?.email ?? actor?.id ?? null,
    widthMin: 16,
    rank: 2,
  },
  { title: 'RESOURCE', value: ({ resource }) => resourceText(resource), widthMin: 16, rank: 1 },
  { title: 'ID', value: ({ id }) => id, isWhole: true, widthMin: 36 },
]

function resourceText(resource: Event['resource']): string | null {
  if (resource === null) return null
  return [resource.type, resource.id].filter((part) => part !== undefined).join(' ')
}

/** All fields of an event. Parts that it doesn't have are left out. */
export function eventFields(event: Event): [name: string, value: string][] {
  return Object.entries(event).flatMap(([name, value]): [string, string][] => {
    if (value === null) return []
    if (typeof value !== 'object') return [[name, String(value)]]
    if (name === 'metadata') return [[name, JSON.stringify(value)]]
    return Object.entries(value).map(([part, text]) => [`${name}.${part}`, String(text)])
  })
}
