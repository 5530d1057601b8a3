import {
  EXCLUDED_FIELDS,
  type Exclusion,
  isExcludedField,
  orderExclusions,
} from '../ledger/exclusion.ts'
import { parseId } from '../platform/id.ts'

/** What is wrong with a text that is no exclusion. */
export const EXCLUSION_RULE = `must be one of ${EXCLUDED_FIELDS.join(', ')}, then a colon and the value to leave out, such as category:billing; a projectId is a uuid`

/** `category:billing`. The first colon ends the field's name; those behind it are the value's. */
export function parseExclusion(text: string): Exclusion | null {
  const [, field, value] = /^([a-zA-Z]+):(.*)$/s.exec(text) ?? []
  if (!isExcludedField(field) || value === undefined) return null
  if (field !== 'projectId') return { field, value }
  const id = parseId<'project'>(value)
  return id === null ? null : { field, value: id }
}

/** Of texts that were checked. */
export function readExclusions(texts: readonly string[]): readonly Exclusion[] | null {
  return orderExclusions(texts.flatMap((text) => parseExclusion(text) ?? []))
}

export function exclusionText({ field, value }: Exclusion): string {
  return `${field}:${value}`
}
