import { type RawBuilder, sql } from 'kysely'
import { foldCase } from '../../platform/fold-case.ts'
import { innerText, keyEnd, METADATA_VALUE_LENGTH_MAX, type MetadataTerm } from './metadata-term.ts'

/*
 * Conditions on an event's canonical texts, equivalent to `metadata-match.ts`. Parsing a text in the
 * database takes 50 µs, so they compare its characters where that is exact.
 *
 * A quote after a bracket, a colon or a comma is not escaped. If a letter or a digit follows it, it is not the
 * end of a string either, so a string starts there. And if a text has no bracket of an inner object, all of its
 * keys are those of the metadata.
 */

/** Keys and values that start like this can be found by comparing characters. */
const PLAIN_START = /^[A-Za-z0-9]/
/** In an array, PostgreSQL would take such a key as an index. */
const INDEX_START = /^[-+\s\d]/
/** How canonical JSON writes numbers and literals. A number that it writes differently doesn't matter here. */
const UNQUOTED = /^(?:true|false|null|-?\d[\d.e+-]*)$/

/** Whether an event has what each term requires. */
export function termsCondition(terms: readonly MetadataTerm[]): RawBuilder<unknown> {
  return onWholeText(sql.join(terms.map(termCondition), sql` and `))
}

/**
 * PostgreSQL decompresses a large text for each comparison. This does it once per event, for a condition on
 * `metadata`. Without the offset, the planner would undo that.
 */
function onWholeText(condition: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`(select ${condition} from (select metadata || '' as metadata offset 0) as whole)`
}

/** Ordered so that most events need one or two comparisons. */
function termCondition(term: MetadataTerm): RawBuilder<unknown> {
  const { path, values } = term
  const nodes = sql`metadata_value(metadata, ${path}) as node`
  const parsed =
    values === null
      ? sql`exists (select from ${nodes})`
      : sql`exists (select from ${nodes} where node.value = any (${values}::text[]))`
  const hasKey = contains(keyEnd(path))
  const hasValue = values && anyOf(values.map((value) => contains(innerText(value))))
  return sql`
    (case when not coalesce(${hasValue ?? hasKey}, false) then false
          ${PLAIN_START.test(path) ? comparedTerm(term) : sql``}
          when not ${hasKey} then false
          ${whenNestedKeyMatches(term)} else ${parsed} end)`
}

/** Decides for texts without inner objects, unless the key has an array. */
function comparedTerm({ path, values }: MetadataTerm): RawBuilder<unknown> {
  const key = `"${innerText(path)}":`
  const spellings =
    values === null
      ? [key]
      : values.flatMap((value) => [
          ...(UNQUOTED.test(value) ? [`${key}${value},`, `${key}${value}}`] : []),
          `${key}"${innerText(value)}"`,
        ])
  const isFound = anyOf([
    ...spellings.map((text) => contains(`,${text}`)),
    ...spellings.map((text) => sql`starts_with(metadata, ${`{${text}`})`),
  ])
  const isFlat = sql`position('{' in substr(metadata, 2)) = 0`
  const isArray = values === null ? sql`false` : contains(`${key}[`)
  return sql`
    when ${isFound} and ${isFlat} then true
    when not ${isArray} and ${isFlat} then false`
}

/**
 * Accepts nested keys, which is several times faster than listing the nodes. In an array, PostgreSQL would take a
 * key that starts like a number as an index.
 */
function whenNestedKeyMatches({ path, values }: MetadataTerm): RawBuilder<unknown> {
  const keys = path.split('.')
  if (values === null || keys.some((key) => INDEX_START.test(key))) return sql``
  if (values.some((value) => /^[{[]/.test(value))) return sql``
  return sql`when metadata::json #>> ${keys}::text[] = any (${values}::text[]) then true`
}

/**
 * The value at a path of an event's metadata. Null if it has none, several or a value that is longer than those of
 * a filter. Following the keys of the path is faster than listing the nodes, and exact if no key of the text has a
 * dot of the path.
 */
export function onlyMetadataValue(path: string): RawBuilder<unknown> {
  const keys = path.split('.')
  const joined = keys.flatMap((_, first) =>
    keys.slice(first + 1).map((_key, more) => keys.slice(first, first + more + 2).join('.')),
  )
  const isDotted = anyOf([sql`false`, ...joined.map((key) => contains(`${innerText(key)}":`))])
  const hasIndex = keys.some((key) => INDEX_START.test(key))
  const followed = sql`
    (select case when json_typeof(node) not in ('object', 'array')
                 then coalesce(node #>> '{}', 'null') end
       from (select metadata::json #> ${keys}::text[] as node offset 0) as followed)`
  const listed = sql`
    (select case when count(node.value) = 1 then min(node.value) end
       from metadata_value(metadata, ${path}) as node)`
  const found = hasIndex
    ? listed
    : sql`(case when ${isDotted} then ${listed} else coalesce(${followed}, ${listed}) end)`
  return sql`
    (select case when length(value) <= ${METADATA_VALUE_LENGTH_MAX} then value end
       from (select case when ${contains(keyEnd(path))} then ${found} end as value
               from (select metadata || '' as metadata offset 0) as whole
             offset 0) as single)`
}

/** Whether a value in an event's metadata equals the text. The letters A to Z match either case. */
export function anyValueCondition(text: string): RawBuilder<unknown> {
  const value = foldCase(text)
  const inner = innerText(value)
  const isIn = (part: string) => sql`position(${part} in lower(metadata)) > 0`
  const quoted = [`:"${inner}"`, `["${inner}"`, `,"${inner}",`, `,"${inner}"]`].map(isIn)
  const parsed = sql`
    exists (select from metadata_scalar(lower(metadata)) as node where node.value = ${value})`
  const rest = PLAIN_START.test(value) && !UNQUOTED.test(value) ? sql`false` : parsed
  const isFound = PLAIN_START.test(value) ? sql`when ${anyOf(quoted)} then true` : sql``
  return onWholeText(
    sql`(case when not coalesce(${isIn(inner)}, false) then false ${isFound} else ${rest} end)`,
  )
}

/** The keys of an actor are sorted, so its role comes last. */
export function roleCondition(role: string): RawBuilder<unknown> {
  const last = `"role":"${innerText(role)}"}`
  const end = `,${last}`
  return sql`(actor = ${`{${last}`} or right(actor, ${Array.from(end).length}) = ${end})`
}

function contains(part: string): RawBuilder<unknown> {
  return sql`position(${part} in metadata) > 0`
}

function anyOf(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return sql`(${sql.join(conditions, sql` or `)})`
}
