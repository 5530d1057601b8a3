import type { Static, TSchema } from 'typebox'
import { ApiError } from '../../errors.ts'
import { createParser } from '../validate.ts'

/** An input that was stored earlier, complete or as far as this version accepts it. */
type StoredInput<T> = { value: T; isUsable: boolean; unusableFields: string[] }

/** An error can hide others, because TypeBox stops after a few. */
const TRIES_MAX = 10
const FIELDS_NAMED_MAX = 10

/**
 * Reads an input that was validated by the schema of an earlier version. Fields that the current schema
 * rejects are listed and omitted. Code that acts on the input must then refuse, because dropping a filter
 * would match more events. If nothing can be read, the value is `fallback`.
 */
export function createStoredReader<const T extends TSchema>(
  schema: T,
  fallback: Static<T>,
): (stored: unknown) => StoredInput<Static<T>> {
  const parse = createParser(schema)
  return (stored) => {
    let rest = stored
    const unusable = new Set<string>()
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const value = parse(rest)
      if (!(value instanceof ApiError)) {
        return { value, isUsable: unusable.size === 0, unusableFields: [...unusable] }
      }
      for (const { path } of value.details ?? []) {
        const names = namesIn(path)
        unusable.add(names.join('.'))
        rest = withoutPath(rest, names)
      }
    }
    return { value: fallback, isUsable: false, unusableFields: [...unusable] }
  }
}

/** Call before acting on a stored input. */
export function refuseUnusable(
  what: string,
  { isUsable, unusableFields }: StoredInput<unknown>,
): void {
  if (isUsable) return
  const fields = unusableFields.filter((name) => name !== '').slice(0, FIELDS_NAMED_MAX)
  throw new ApiError('conflict', {
    message: `This ${what} was saved by another version of the service. This version doesn't accept ${fields.join(', ') || 'it'}. Save it again.`,
  })
}

/** Splits a JSON pointer. */
function namesIn(pointer: string): string[] {
  const parts = pointer.split('/').slice(1)
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function withoutPath(value: unknown, [first, ...others]: readonly string[]): unknown {
  // Remove a whole list: with an item missing, it would mean something else.
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject || first === undefined) return undefined
  const entries = Object.entries(value).map(([name, inner]: [string, unknown]) =>
    name === first ? [name, withoutPath(inner, others)] : [name, inner],
  )
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined))
}
