import { parseJson } from '../../platform/json/parse-json.ts'
import type { EventFacets } from '../event.ts'

/**
 * Extracts the filtered values from an actor and a resource. The texts were sealed, so they are valid JSON
 * with known fields. An erased part has no values.
 */
export function facetsOf(actor: string | null, resource: string | null): EventFacets {
  const actorFields = readFields(actor)
  const resourceFields = readFields(resource)
  return {
    actorId: actorFields['id'] ?? null,
    actorEmail: actorFields['email'] ?? null,
    resourceType: resourceFields['type'] ?? null,
    resourceId: resourceFields['id'] ?? null,
  }
}

/** The fields of an actor or a resource. All of them are strings. */
export function readFields(part: string | null): Partial<Record<string, string>> {
  return part === null ? {} : parseJson(part)
}
