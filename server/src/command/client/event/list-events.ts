import { EVENT_TABLE, eventFields } from './event-columns.ts'
import { listFilters } from '../event-filters.ts'
import type { ClientCommand } from '../run-client.ts'

/** What `GET /v1/events` returns at most per page. */
const PAGE_EVENTS_MAX = 200

export type ListEventsOptions = {
  filter: string[]
  from?: string
  to?: string
  order: 'asc' | 'desc'
  limit: number
  workspace?: string
}

/** `annals events list`: the newest events that match. */
export async function printEvents(
  { annals, output, signal }: ClientCommand,
  { filter, from, to, order, limit, workspace }: ListEventsOptions,
): Promise<void> {
  const filters = listFilters(filter, { ...(from && { from }), ...(to && { to }) })
  const print = output.rows(EVENT_TABLE)
  const pages = annals.events.list(
    {
      ...filters,
      order,
      limit: Math.min(limit, PAGE_EVENTS_MAX),
      ...(workspace !== undefined && { workspaceId: workspace }),
    },
    { signal },
  )
  let left = limit
  for await (const { data } of pages.pages()) {
    const rows = data.slice(0, left)
    left -= rows.length
    if (rows.length > 0) await print(rows)
    if (left === 0) break
  }
  if (left === limit && !output.isJson) output.note('No events match.')
}

/** `annals events get`: all fields of one event. */
export async function printEvent(
  { annals, output, signal }: ClientCommand,
  { id }: { id: string },
): Promise<void> {
  const event = await annals.events.get(id, { signal })
  await output.item(event, eventFields(event))
}
