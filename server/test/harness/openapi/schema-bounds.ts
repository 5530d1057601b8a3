const UNIQUE_ITEMS_MAX = 100

/** Formats that reject long text by themselves. The others need `maxLength`. */
const BOUNDED_FORMATS: ReadonlySet<unknown> = new Set(['uuid', 'date-time', 'email'])

type Node = Record<string, unknown>

/**
 * Lists the parts of a schema without a bound, for which validation can cost more than parsing. An
 * object with arbitrary keys is fine if the schema doesn't describe the values: validation skips them,
 * and the size of the body limits them.
 */
export function unboundedParts(schema: unknown, path = ''): string[] {
  if (!isNode(schema)) return []
  const says = (problem: string) => [`${path || '/'}: ${problem}`]
  const type = schema.type
  const problems: string[] = []
  if (type === 'array' && typeof schema.maxItems !== 'number') {
    problems.push(...says('an array without maxItems'))
  }
  if (schema.uniqueItems === true && !(Number(schema.maxItems) <= UNIQUE_ITEMS_MAX)) {
    problems.push(...says(`uniqueItems on more than ${UNIQUE_ITEMS_MAX} items`))
  }
  if (type === 'string' && !isBoundedString(schema)) problems.push(...says('an unbounded string'))
  if (typeof schema.pattern === 'string' && !isLinear(schema.pattern)) {
    problems.push(...says(`the pattern ${schema.pattern} may take more than linear time`))
  }
  if (isNode(schema.patternProperties)) problems.push(...says('patternProperties'))
  const values = schema.additionalProperties
  if (isNode(values) && Object.keys(values).length > 0 && !(Number(schema.maxProperties) <= 100)) {
    problems.push(...says('a schema for the values of any number of keys'))
  }
  return [
    ...problems,
    ...childrenOf(schema).flatMap(([step, child]) => unboundedParts(child, `${path}/${step}`)),
  ]
}

function isBoundedString(schema: Node): boolean {
  return (
    typeof schema.maxLength === 'number' ||
    'enum' in schema ||
    'const' in schema ||
    BOUNDED_FORMATS.has(schema.format)
  )
}

/** One atom of a pattern: a class, a class escape, or a literal character. */
const ATOM = String.raw`(?:\[(?:[^\]\\]|\\.)+\]|\\[dDwWsS]|[\w\-:/@ ])`
const COUNT = String.raw`\{\d+(?:,\d+)?\}`

/**
 * Whether a pattern is of the simple kind that can't backtrack: anchored at the start, without groups,
 * and with at most one unbounded repetition.
 */
export function isLinear(pattern: string): boolean {
  const simple = new RegExp(`^\\^(?:${ATOM}(?:${COUNT}|[+*?])?)*\\$$`)
  const endless = pattern.replaceAll(/\[(?:[^\]\\]|\\.)+\]/g, 'x').match(/[+*]|\{\d+,\}/g) ?? []
  return simple.test(pattern) && endless.length <= 1
}

function childrenOf(schema: Node): [string, unknown][] {
  const named = Object.entries(isNode(schema.properties) ? schema.properties : {})
  const listed = ['anyOf', 'allOf', 'oneOf', 'prefixItems'].flatMap((keyword) => {
    const children: unknown = schema[keyword]
    if (!Array.isArray(children)) return []
    return children.map((child, index): [string, unknown] => [`${keyword}/${index}`, child])
  })
  const single = [
    'items',
    'not',
    'if',
    'then',
    'else',
    'contains',
    'propertyNames',
    'additionalProperties',
  ].flatMap((keyword): [string, unknown][] =>
    keyword in schema ? [[keyword, schema[keyword]]] : [],
  )
  return [...named, ...listed, ...single]
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
