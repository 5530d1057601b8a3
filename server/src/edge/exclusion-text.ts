import {
  EXCLUDED_FIELDS,
  type Exclusion,
  isExcludedField,
  orderExclusions,
} from '../ledger/exclusion.ts'
import { parseId } from '../platform/id.ts'

/** The message for a text that isn't a valid exclusion. */
export const EXCLUSION_RULE = `must be one of ${EXCLUDED_FIELDS.join(', ')}, then a colon and the value to exclude, such as category:billing; a projectId must be a UUID`

/** Parses `category:billing`. The first colon ends the field's name; the value can contain others. */
export function parseExclusion(text: string): Exclusion | null {
  const [, field, value] = /^([a-zA-Z]+):(.*)$/s.exec(text) ?? []
  if (!isExcludedField(field) || value === undefined) return null
  if (field !== 'projectId') return { field, value }
  const id = parseId<'project'>(value)
  return id === null ? null : { field, value: id }
}

/** Expects texts that were already validated. */
export function readExclusions(texts: readonly string[]): readonly Exclusion[] | null {
  return orderExclusions(texts.flatMap((text) => parseExclusion(text) ?? []))
}

export function exclusionText({ field, value }: Exclusion): string {
  return `${field}:${value}`
}
