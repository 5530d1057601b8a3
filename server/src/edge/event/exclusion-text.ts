import {
  EXCLUDED_FIELDS,
  type Exclusion,
  type FieldValue,
  isExcludedField,
  orderExclusions,
} from '../../ledger/filter/exclusion.ts'
import { parseId } from '../../platform/id.ts'

/** The message for a text that isn't a field and a value. */
export const EXCLUSION_RULE = `must be one of ${EXCLUDED_FIELDS.join(', ')}, then a colon and a value, such as category:billing; a projectId must be a UUID`

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
  return orderExclusions(readValues(texts))
}

/** Reads the notation of exclusions, which `anyOf` shares. Expects texts that were already validated. */
export function readValues(texts: readonly string[]): FieldValue[] {
  return texts.flatMap((text) => parseExclusion(text) ?? [])
}

export function exclusionText({ field, value }: Exclusion): string {
  return `${field}:${value}`
}
