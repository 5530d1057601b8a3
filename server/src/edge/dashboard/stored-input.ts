import type { Static, TSchema } from 'typebox'
import { ApiError } from '../../errors.ts'
import { createParser } from '../validate.ts'

/** What became of an input that was stored: whole, or as far as this version takes it. */
export type StoredInput<T> = { value: T; isUsable: boolean; unusableFields: string[] }

/** A fault may hide others, because TypeBox stops at a few. */
const TRIES_MAX = 10
const FIELDS_NAMED_MAX = 10

/**
 * Reads what was checked by the schema of its day. A field that today's does not take is named and
 * left out of what is shown; whoever would act on the rest must refuse, because a filter that is left
 * out finds more than was asked for. `nothing` stands for what cannot be read at all.
 */
export function createStoredReader<const T extends TSchema>(
  schema: T,
  nothing: Static<T>,
): (stored: unknown) => StoredInput<Static<T>> {
  // Not before it is needed: what is compiled while modules load does not know our formats yet.
  let parse: ReturnType<typeof createParser<T>> | null = null
  return (stored) => {
    parse ??= createParser(schema)
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
        rest = without(rest, names)
      }
    }
    return { value: nothing, isUsable: false, unusableFields: [...unusable] }
  }
}

/** For whoever would act on it. */
export function refuseUnusable(
  what: string,
  { isUsable, unusableFields }: StoredInput<unknown>,
): void {
  if (isUsable) return
  const fields = unusableFields.filter((name) => name !== '').slice(0, FIELDS_NAMED_MAX)
  throw new ApiError('conflict', {
    message: `This ${what} was saved by another version of the service; this one does not take ${fields.join(', ') || 'it'}. Save it again.`,
  })
}

/** Of a JSON pointer. */
function namesIn(pointer: string): string[] {
  const parts = pointer.split('/').slice(1)
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function without(value: unknown, [first, ...others]: readonly string[]): unknown {
  // A list goes as a whole: its items stand for each other.
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject || first === undefined) return undefined
  const entries = Object.entries(value).map(([name, inner]: [string, unknown]) =>
    name === first ? [name, without(inner, others)] : [name, inner],
  )
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined))
}
