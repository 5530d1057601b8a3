/** Deeper than any reader should recurse. */
const DEEP = 5_000
const BODY_BYTES_MAX = 256 * 1_024

/** JSON texts that are broken, expensive for their size, or valid but unusual. */
export const HOSTILE_BODIES: Record<string, Buffer> = {
  'not JSON': Buffer.from('{"category":'),
  'not UTF-8': Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
  null: Buffer.from('null'),
  'a number': Buffer.from('1e400'),
  'an empty object': Buffer.from('{}'),
  'an empty list': Buffer.from('[]'),
  'nested lists': Buffer.from('['.repeat(DEEP) + ']'.repeat(DEEP)),
  'nested objects': Buffer.from('{"a":'.repeat(DEEP) + '1' + '}'.repeat(DEEP)),
  'open brackets': Buffer.alloc(BODY_BYTES_MAX, '['),
  'many items': Buffer.from(`{"events":[${'0,'.repeat(BODY_BYTES_MAX / 2 - 10)}0]}`),
  'many unknown fields': Buffer.from(
    `{${Array.from({ length: 20_000 }, (_, index) => `"k${index}":1`).join()}}`,
  ),
  'duplicate keys': Buffer.from(`{${'"a":1,'.repeat(20_000)}"a":1}`),
  'a prototype': Buffer.from('{"__proto__":{"admin":true},"constructor":{"prototype":1}}'),
  'a lone surrogate': Buffer.from('{"category":"\\ud800","action":"x"}'),
  'a null character': Buffer.from('{"category":"a\\u0000b","action":"x"}'),
  'a long string': Buffer.from(`{"category":"${'a'.repeat(BODY_BYTES_MAX - 40)}","action":"x"}`),
  'escapes only': Buffer.from(`{"category":"${'\\u0041'.repeat(40_000)}","action":"x"}`),
  'too large': Buffer.alloc(BODY_BYTES_MAX + 1, ' '),
}

/** Values for each field of a body in turn. */
export const HOSTILE_FIELDS: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  '',
  'x'.repeat(100_000),
  ' '.repeat(50_000) + '!',
  'a@'.repeat(20_000),
  'https://user:pass@[::ffff:127.0.0.1]:0/#',
  '9999-99-99T99:99:99Z',
  '\u202e\u0000'.slice(0, 1).repeat(300),
  [],
  Array.from({ length: 20_000 }, (_, index) => index),
  Array.from({ length: 20_000 }, () => 'AUDIT_EVENT_CREATED'),
  {},
  { toString: 1, valueOf: null, length: -1 },
  Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, index])),
]

/** Already percent-encoded. */
export const HOSTILE_PARAMETERS: readonly string[] = [
  '',
  '%00',
  '%ff',
  '%F0%9F%92%A9',
  '-1',
  '0x10',
  '1e9',
  '99999999999999999999',
  'a'.repeat(12_000),
  '2026-01-01T00:00:00+01:00',
  '%27%20or%201%3D1--',
  '../../etc/passwd',
  '__proto__',
]

export const HOSTILE_IDS: readonly string[] = [
  '0',
  '%2e%2e',
  '%00',
  'a'.repeat(500),
  '00000000-0000-0000-0000-000000000000',
  'urn:uuid:00000000-0000-4000-8000-000000000000',
  '%F0%9F%92%A9',
  "';select pg_sleep(10)--".replaceAll(' ', '%20'),
]
