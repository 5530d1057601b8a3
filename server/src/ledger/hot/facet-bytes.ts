import { type Field, FIELD_INDEX, type HotRow } from './hot-row.ts'
import { isBytesAt } from './row-bytes.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const CLOSE = Buffer.from('}')

const label = (name: string) => ({
  first: Buffer.from(`{"${name}":"`),
  next: Buffer.from(`,"${name}":"`),
})
const [ID, EMAIL, ROLE, TYPE] = [label('id'), label('email'), label('role'), label('type')]
const { actor, actorId, actorEmail, resource, resourceId, resourceType } = FIELD_INDEX

/**
 * Whether the facets are exactly those in the actor and the resource, without parsing them. Also false if one
 * of them has characters that JSON escapes.
 */
export function hasFacets(row: HotRow): boolean {
  return hasActor(row) && hasResource(row)
}

function hasActor(row: HotRow): boolean {
  if (row.isNull(actor)) return row.isNull(actorEmail) && row.isNull(actorId)
  const start = row.startOf(actor)
  const end = endOfFacet(row, ID, actorId, start, endOfFacet(row, EMAIL, actorEmail, start, start))
  return isEnd(row, actor, endOfRole(row, start, end))
}

function hasResource(row: HotRow): boolean {
  if (row.isNull(resource)) return row.isNull(resourceId) && row.isNull(resourceType)
  const start = row.startOf(resource)
  const end = endOfFacet(row, ID, resourceId, start, start)
  return isEnd(row, resource, endOfFacet(row, TYPE, resourceType, start, end))
}

type Label = ReturnType<typeof label>

/** The position after a member with the value of a facet, or `at` if that is null. -1 if the part differs. */
function endOfFacet(
  row: HotRow,
  { first, next }: Label,
  facet: Field,
  start: number,
  at: number,
): number {
  if (at < 0 || row.isNull(facet)) return at
  const { bytes } = row
  const name = at === start ? first : next
  if (!isBytesAt(bytes, at, name)) return -1
  let end = at + name.length
  for (let index = row.startOf(facet); index < row.endOf(facet); index += 1, end += 1) {
    const byte = bytes[index]
    if (byte !== bytes[end] || byte === QUOTE || byte === BACKSLASH) return -1
  }
  return bytes[end] === QUOTE ? end + 1 : -1
}

/** The position after the role, which has no facet, or `at` if there is none. */
function endOfRole(row: HotRow, start: number, at: number): number {
  const name = at === start ? ROLE.first : ROLE.next
  if (at < 0 || !isBytesAt(row.bytes, at, name)) return at
  for (let index = at + name.length; index < row.endOf(actor); index += 1) {
    const byte = row.bytes[index]
    if (byte === BACKSLASH) return -1
    if (byte === QUOTE) return index + 1
  }
  return -1
}

/** Whether the part ends here. */
function isEnd(row: HotRow, part: Field, at: number): boolean {
  if (at === row.startOf(part)) return row.lengthOf(part) === 2 && isBytesAt(row.bytes, at, EMPTY)
  return at + CLOSE.length === row.endOf(part) && isBytesAt(row.bytes, at, CLOSE)
}

const EMPTY = Buffer.from('{}')
