import type { EventFacets } from './event.ts'

/**
 * What is filtered on, read from the texts that were sealed, so they are JSON of known fields; of an
 * erased part nothing is left.
 */
export function facetsOf(actor: string | null, resource: string | null): EventFacets {
  const who = readFields(actor)
  const what = readFields(resource)
  return {
    actorId: who['id'] ?? null,
    actorEmail: who['email'] ?? null,
    resourceType: what['type'] ?? null,
    resourceId: what['id'] ?? null,
  }
}

/** The fields of an actor or a resource, which are all texts. */
export function readFields(part: string | null): Partial<Record<string, string>> {
  return part === null ? {} : JSON.parse(part)
}
