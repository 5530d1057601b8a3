import { type RawBuilder, sql } from 'kysely'
import type { Selection } from '../webhook.ts'

/**
 * The condition that an event is sent, on the columns of `event`. The statement is the same for every
 * selection, so that its plan can be kept.
 */
export function isSelected({ projectId, filter }: Selection): RawBuilder<unknown> {
  return sql`((${projectId}::uuid is null or project_id = ${projectId}::uuid)
    and ${matches('category', filter?.categories)}
    and ${matches('action', filter?.actions)}
    and ${matches('actor_id', filter?.actorIds)}
    and ${matches('resource_type', filter?.resourceTypes)})`
}

function matches(column: string, patterns: readonly string[] | undefined): RawBuilder<unknown> {
  const likes = patterns?.map(likePattern) ?? null
  return sql`(${likes}::text[] is null or ${sql.ref(column)} like any (${likes}::text[]))`
}

function likePattern(pattern: string): string {
  const text = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern
  const literal = text.replaceAll(/[\\%_]/g, (char) => `\\${char}`)
  return pattern.endsWith('*') ? `${literal}%` : literal
}
