/** Actors that are neither a member nor a key, by their id. */
export const SERVICE_ACTORS: Record<string, string> = { operator: 'Operator', annals: 'Annals' }

type ActorEvent = {
  actor: Record<string, unknown> | null
  metadata: Record<string, unknown> | null
}

/** A member by email address, a key by name. */
export function actorText({ actor, metadata }: ActorEvent): string {
  const keyName = fieldOf(metadata, 'keyName')
  if (keyName !== null) return `Key ${keyName}`
  // Entries of version 0.2 have the operator as an email address.
  const name = fieldOf(actor, 'email') ?? fieldOf(actor, 'id') ?? 'Unknown member'
  return SERVICE_ACTORS[name] ?? name
}

export function fieldOf(part: Record<string, unknown> | null, field: string): string | null {
  const value = part?.[field]
  return typeof value === 'string' ? value : null
}
