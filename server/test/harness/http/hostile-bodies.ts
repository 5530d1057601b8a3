/** JSON designed to be expensive, starting with values that are valid as `metadata`. */
export type Shape = { name: string; text: (bytes: number) => string }

/** Distinct keys of three characters that need no escapes, in no particular order. */
function keyAt(index: number): string {
  const { length } = ALPHABET
  const scattered = (index * 7_919) % length ** 3
  const char = (divisor: number) => ALPHABET.charAt(Math.floor(scattered / divisor) % length)
  return char(1) + char(length) + char(length ** 2)
}

const ALPHABET = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index))
  .filter((char) => char !== '"' && char !== '\\')
  .join('')

/** Repeats parts between the two ends up to the given size. */
function fill(bytes: number, [open, close]: [string, string], part: (index: number) => string) {
  const parts: string[] = []
  let left = bytes - open.length - close.length
  for (let index = 0; ; index += 1) {
    const next = part(index)
    left -= Buffer.byteLength(next) + 1
    if (left < 0) return `${open}${parts.join(',')}${close}`
    parts.push(next)
  }
}

const object = (name: string, member: (index: number) => string): Shape => ({
  name,
  text: (bytes) => fill(bytes, ['{', '}'], member),
})
const list = (name: string, item: (index: number) => string): Shape => ({
  name,
  text: (bytes) => fill(bytes, ['{"k":[', ']}'], item),
})
const string = (name: string, unit: string): Shape => ({
  name,
  text: (bytes) => `{"k":"${unit.repeat(Math.floor((bytes - 8) / Buffer.byteLength(unit)))}"}`,
})

export const MANY_KEYS = object('many short keys', (index) => `"${keyAt(index)}":0`)
export const MANY_NUMBERS = list('many numbers', () => '0')
export const LONG_STRING = string('a long string', 'x')
export const BLANKS = 'a long run of blanks'

/** Objects that are accepted as metadata. */
export const VALID_OBJECTS: readonly Shape[] = [
  MANY_KEYS,
  object('keys with a long shared prefix', (index) => `"${'p'.repeat(200)}${keyAt(index)}":0`),
  object('keys with escapes', (index) => `"\\"${keyAt(index)}":0`),
  object('keys like array indexes, in reverse', (index) => `"${900_000 - index}":0`),
  object('keys like sparse array indexes', (index) => `"${index * 4_096}":0`),
  object('many small objects', (index) => `"${keyAt(index)}":{"b":0,"a":0}`),
  MANY_NUMBERS,
  list('many long fractions', () => '0.30000000000000004'),
  list('many exponents', () => '1e21'),
  list('many empty lists', () => '[]'),
  list('many empty objects', () => '{}'),
  list('many short strings', () => '"é"'),
  list('many deep values', () => `${'['.repeat(28)}${']'.repeat(28)}`),
  LONG_STRING,
  string('a string of escapes', '\\n'),
  string('a string of surrogate pairs', '\\ud83d\\ude00'),
  string('a string of three-byte characters', '€'),
  {
    name: 'a long string, as deep as it can be',
    text: (bytes) => `${'{"k":'.repeat(30)}"${'x'.repeat(bytes - 200)}"${'}'.repeat(30)}`,
  },
  { name: BLANKS, text: (bytes) => `{${' '.repeat(bytes - 2)}}` },
]

/** Texts that are refused as late as possible. */
export const BAD_TEXTS: readonly Shape[] = [
  object('the same key again and again', () => '"k":0'),
  { name: 'only opening brackets', text: (bytes) => '['.repeat(bytes) },
  { name: 'only opening braces', text: (bytes) => '{"k":'.repeat(bytes / 5) },
  { name: 'only quotes', text: (bytes) => '"'.repeat(bytes) },
  { name: 'a number without end', text: (bytes) => `[${'9'.repeat(bytes - 2)}]` },
  { name: 'a fraction without end', text: (bytes) => `[0.${'1'.repeat(bytes - 5)}]` },
  { name: 'zeros and then a digit', text: (bytes) => `[0.${'0'.repeat(bytes - 6)}1]` },
  { name: 'a list of numbers', text: (bytes) => fill(bytes, ['[', ']'], () => '1') },
  {
    name: 'a fault at the end of many keys',
    text: (bytes) => fill(bytes, ['{', ',oops}'], (index) => `"${keyAt(index)}":0`),
  },
  {
    name: 'a bad escape at the end of a long string',
    text: (bytes) => `["${'\\n'.repeat(bytes / 2 - 10)}\\x"]`,
  },
  {
    name: 'half a surrogate pair at the end of a long string',
    text: (bytes) => `["${'\\n'.repeat(bytes / 2 - 10)}\\ud800"]`,
  },
]
