import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type TSchema, Type } from 'typebox'
import { ApiError, type ErrorDetail } from '../errors.ts'
import { escapePointer } from '../platform/json/json-fault.ts'
import { DateTime, Nullable, STRICT, Uuid } from './schema/common.ts'
import { registerFormats } from './schema/formats.ts'
import { compileValidator } from './validate.ts'

registerFormats()

const Body = Type.Object(
  {
    category: Type.String({ minLength: 1, maxLength: 8 }),
    at: Type.Optional(DateTime),
    projectId: Type.Optional(Nullable(Uuid)),
    source: Type.Optional(Type.Enum(['HOT', 'ARCHIVED'])),
    count: Type.Optional(Type.Integer({ minimum: 1 })),
    actor: Type.Optional(Type.Object({ 'e/mail~': Type.Optional(Type.String()) }, STRICT)),
  },
  STRICT,
)
const Query = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    cursor: Type.Optional(Type.String()),
  },
  STRICT,
)

function validate(schema: TSchema, httpPart: 'body' | 'querystring', input: unknown) {
  const check = compileValidator({ schema, httpPart, method: 'POST', url: '/' })
  const result: unknown = check(input)
  assert(typeof result === 'object' && result !== null)
  if ('value' in result) return { value: result.value, details: null, message: '' }
  assert('error' in result && result.error instanceof ApiError)
  assert.equal(result.error.code, 'invalid_request')
  const details: readonly ErrorDetail[] = result.error.details ?? []
  return { value: null, details, message: result.error.message }
}

test('accepts a valid body unchanged', () => {
  const body = { category: 'billing', at: '2026-03-01T12:00:00Z', projectId: null, count: 3 }
  assert.equal(validate(Body, 'body', body).value, body)
})

const FAULTS: readonly [string, unknown, string, string | RegExp][] = [
  [
    'an unknown field is refused, never dropped',
    { category: 'a', x: 1 },
    '/x',
    'is not a known field',
  ],
  [
    'an unknown field deep inside is refused and escaped as a JSON pointer',
    { category: 'a', actor: { 'a/b~c': 1 } },
    '/actor/a~1b~0c',
    'is not a known field',
  ],
  ['a missing field is named', {}, '/category', 'is required'],
  ['a number is not read as text', { category: 5 }, '/category', 'must be a string'],
  ['text is not read as a number', { category: 'a', count: '3' }, '/count', 'must be an integer'],
  ['a fraction is no integer', { category: 'a', count: 1.5 }, '/count', 'must be an integer'],
  ['null is not absence', { category: 'a', count: null }, '/count', 'must be an integer'],
  ['empty text is too short', { category: '' }, '/category', 'must not be empty'],
  ['long text is too long', { category: 'x'.repeat(9) }, '/category', /more than 8/],
  ['a date without an offset is refused', { category: 'a', at: '2026-03-01' }, '/at', /RFC 3339/],
  [
    'an unknown value lists the allowed ones',
    { category: 'a', source: 'hot' },
    '/source',
    'must be one of HOT, ARCHIVED',
  ],
  ['a list is no object', [], '', 'must be an object'],
  ['nothing is no object', undefined, '', 'must be an object'],
  [
    'a field of the prototype is unknown like any other',
    JSON.parse('{"category":"a","__proto__":{}}'),
    '/__proto__',
    'is not a known field',
  ],
]

for (const [promise, body, path, message] of FAULTS) {
  test(promise, () => {
    const { details } = validate(Body, 'body', body)
    assert.equal(details?.length, 1, JSON.stringify(details))
    assert.equal(details[0]?.path, path)
    if (typeof message === 'string') assert.equal(details[0]?.message, message)
    else assert.match(details[0]?.message ?? '', message)
  })
}

test('names the field in the error message of a union', () => {
  const { details } = validate(Body, 'body', { category: 'a', projectId: 'x' })
  assert(details?.every(({ path }) => path === '/projectId'))
  assert(details?.some(({ message }) => message === 'must be a UUID'))
})

test('reports all errors at once, up to a limit', () => {
  const two = validate(Body, 'body', { category: 1, count: 'x' })
  assert.deepEqual(two.details?.map(({ path }) => path).toSorted(), ['/category', '/count'])
  assert.match(two.message, /\(and 1 more\)\.$/)
  const names = Array.from({ length: 1_000 }, (_, index) => [`field${index}`, 1])
  const flood = validate(Body, 'body', { category: 'a', ...Object.fromEntries(names) })
  assert.equal(flood.details?.length, 20)
})

const Lists = Type.Object(
  {
    tags: Nullable(
      Type.Array(Type.String({ maxLength: 8, pattern: '^[a-z]+$' }), {
        maxItems: 3,
        uniqueItems: true,
      }),
    ),
  },
  STRICT,
)

test('reports a size error alone, before anything else is validated', () => {
  const many = Array.from({ length: 60_000 }, () => 'A')
  const startedAt = process.threadCpuUsage()
  assert.deepEqual(validate(Lists, 'body', { tags: many }).details, [
    { path: '/tags', message: 'must not have more than 3 items' },
  ])
  assert.deepEqual(validate(Lists, 'body', { tags: ['a'.repeat(50_000), 5] }).details, [
    { path: '/tags/0', message: 'must not have more than 8 characters' },
  ])
  const { user, system } = process.threadCpuUsage(startedAt)
  assert(user + system < 100_000, `${user + system} µs`)
})

test('truncates paths in responses, however long a name is', () => {
  const { details } = validate(Body, 'body', { category: 'a', ['k'.repeat(100_000)]: 1 })
  assert.equal(details?.length, 1)
  assert((details[0]?.path.length ?? 0) <= 501)
})

test('reads an integer parameter from decimal text', () => {
  assert.deepEqual(validate(Query, 'querystring', { limit: '200' }).value, { limit: 200 })
})

for (const limit of [
  '0x10',
  '1e1',
  '10.0',
  '+5',
  ' 5',
  '5 ',
  '',
  '05',
  '٣',
  'Infinity',
  'NaN',
  '1_0',
]) {
  test(`rejects "${limit}" as an integer in a query`, () => {
    const { details } = validate(Query, 'querystring', { limit })
    assert.deepEqual(details, [{ path: 'limit', message: 'must be an integer' }])
  })
}

for (const limit of ['0', '-1', '201', '999999999999999']) {
  test(`rejects ${limit}, which is outside 1 to 200`, () => {
    const { details } = validate(Query, 'querystring', { limit })
    assert.equal(details?.length, 1)
    assert.equal(details[0]?.path, 'limit')
    assert.match(details[0]?.message ?? '', /^must be at (most 200|least 1)$/)
  })
}

test('rejects a repeated parameter', () => {
  for (const input of [{ cursor: ['a', 'a'] }, { limit: ['1', '2'] }]) {
    const { details } = validate(Query, 'querystring', input)
    assert.equal(details?.[0]?.message, 'must appear only once', JSON.stringify(input))
  }
})

test('rejects a group of parameters without a name in it', () => {
  const Grouped = Type.Object({ metadata: Type.Object({}, { additionalProperties: true }) })
  for (const value of ['1', ['1', '2']]) {
    const { details } = validate(Grouped, 'querystring', { metadata: value })
    const message = 'must be followed by a path, such as metadata.ip=192.0.2.1'
    assert.deepEqual(details, [{ path: 'metadata', message }])
  }
})

test('rejects an unknown parameter', () => {
  const { details } = validate(Query, 'querystring', { Limit: '5' })
  assert.deepEqual(details, [{ path: 'Limit', message: 'is not a known parameter' }])
})

test('escapes special characters in a JSON pointer', () => {
  assert.equal(escapePointer('a/b~c~1'), 'a~1b~0c~01')
})

test('reports a parameter without a name', () => {
  const { details, message } = validate(Query, 'querystring', { '': '1' })
  assert.deepEqual(details, [{ path: '(no name)', message: 'is not a known parameter' }])
  assert.match(message, /: \(no name\) is not a known parameter\.$/)
})
