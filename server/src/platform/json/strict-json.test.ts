import assert from 'node:assert/strict'
import { suite, test } from 'node:test'

import * as fc from 'fast-check'

import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import type { JsonFault } from './json-fault.ts'
import { findInvalidUtf8, parseStrictJson } from './strict-json.ts'

function parse(text: string): unknown {
  const { value, fault } = parseStrictJson(Buffer.from(text))
  assert.equal(fault, null)
  return value
}

function refusal(text: string | Buffer): JsonFault {
  const { fault } = parseStrictJson(Buffer.from(text))
  assert(fault, `accepted: ${text.toString('utf8').slice(0, 80)}`)
  return fault
}

function assertRefused(
  text: string | Buffer,
  expected: { kind: 'syntax' | 'value'; path: string; offset: number },
): void {
  const { kind, path, offset, message } = refusal(text)
  assert.deepEqual({ kind, path, offset }, expected, message)
  assert.match(message, /^[A-Z].*\.$/s)
}

/** Any character that UTF-8 can encode. fast-check's own unit 'binary' takes a second to build. */
const anyChar = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((point) => String.fromCodePoint(point))

/** A text that differs from JSON.stringify's in spaces and escapes, but not in its value. */
const looseText = fc
  .tuple(fc.jsonValue({ maxDepth: 6, stringUnit: anyChar }), fc.constantFrom('', ' ', '\n\t'))
  .map(([value, space]) => JSON.stringify(value, null, space))
  .filter((text) => !/\\u(?:0000|d[89a-f])/i.test(text) && !text.includes('-0'))

suite('accepts', () => {
  test('any text without forbidden constructs, with the same value as JSON.parse', () => {
    fc.assert(
      fc.property(looseText, (text) => {
        assert.deepEqual(parse(text), JSON.parse(text))
      }),
      { numRuns: rounds(150, 500) },
    )
  })

  test('numbers that a double can represent, in any notation', () => {
    const text = '[1.0, 1e2, 0.1, -0, 0e999, 1E+21, 9007199254740992, 123456789012345.0, 5e-324]'
    const expected = [1, 100, 0.1, -0, 0, 1e21, 2 ** 53, 123456789012345, 5e-324]
    assert.deepEqual(parse(text), expected)
    assert.equal(parse('0.30000000000000004'), 0.1 + 0.2)
    assert.equal(parse('1.7976931348623157e308'), Number.MAX_VALUE)
  })

  test('every double, in any notation of its shortest decimal', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const short = value.toExponential()
        const padded = short.replace(
          /^(-?\d)(\.\d+)?e/,
          (_, digit, rest) => `${digit}${rest ?? '.'}00e`,
        )
        for (const text of [JSON.stringify(value), short, padded]) {
          assert.equal(parse(text), Number(text))
        }
      }),
    )
  })

  test('a key __proto__, as an ordinary property', () => {
    const value = parse('{"__proto__":{"admin":true}}')
    assert(typeof value === 'object' && value !== null)
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.deepEqual(Object.keys(value), ['__proto__'])
    assert(!('admin' in value))
  })

  test('complete surrogate pairs and other escapes', () => {
    assert.equal(parse('"\\ud83d\\ude00 \\uD7FF \\u0001\\/"'), '\u{1F600} \ud7ff \u0001/')
    assert.deepEqual(parse('{"\\u006b\\ud83d\\ude00":"\u{1F600}"}'), { 'k\u{1F600}': '\u{1F600}' })
  })

  test('32 levels of nesting', () => {
    assert.doesNotThrow(() => parse('['.repeat(32) + ']'.repeat(32)))
    assert.doesNotThrow(() => parse(`${'{"a":'.repeat(32)}1${'}'.repeat(32)}`))
  })
})

suite('rejects values, with the path', () => {
  const value = (path: string, offset: number) => ({ kind: 'value', path, offset }) as const

  test('numbers that a double cannot represent', () => {
    for (const number of [
      '12345678901234567890',
      '9007199254740993',
      '1152921504606846976',
      '-9223372036854775808',
      '0.1000000000000000055',
      '1e400',
      '-1e400',
      '1e-400',
      '1e99999999999999999999',
      `0.${'0'.repeat(400)}1`,
      `1${'0'.repeat(400)}`,
    ]) {
      assertRefused(`{"metadata":{"n":[${number}]}}`, value('/metadata/n/0', 18))
    }
  })

  test('integers, exactly if their digits change in a double', () => {
    // Below 1e21 a double is written without an exponent.
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (integer) => {
        const text = String(integer)
        if (String(Number(text)) === text) assert.equal(parse(text), Number(text))
        else assert.equal(refusal(text).kind, 'value')
      }),
    )
  })

  test('a duplicate key in one object, in any notation', () => {
    assertRefused('{"a":1,"b":{"c":1,"c":1}}', value('/b/c', 18))
    assertRefused('{"a":1,"\\u0061":1}', value('/a', 7))
    assertRefused('{"__proto__":1,"__proto__":2}', value('/__proto__', 15))
    assert.doesNotThrow(() => parse('[{"a":1},{"a":{"a":1}}]'))
  })

  test('U+0000 and lone surrogates, in strings and in keys', () => {
    assertRefused('{"a":["x\\u0000"]}', value('/a/0', 6))
    assertRefused('{"a":{"\\u0000":1}}', value('/a', 6))
    assertRefused('["\\ud83d"]', value('/0', 1))
    assertRefused('["\\uDE00\\uD83D"]', value('/0', 1))
    assertRefused('["\\ud83d\\ud83d\\ude00"]', value('/0', 1))
    assertRefused('{"\\udfff":1}', value('', 1))
  })

  test('33 levels of nesting, without using stack for a body full of brackets', () => {
    assertRefused('['.repeat(33) + ']'.repeat(33), value('/0'.repeat(32), 32))
    assertRefused('['.repeat(200_000) + ']'.repeat(200_000), value('/0'.repeat(32), 32))
    assertRefused('{"a":'.repeat(50_000), value('/a'.repeat(32), 160))
  })

  test('with a JSON pointer of limited length as the path', () => {
    assertRefused('{"a/b":{"m~n":{"":[0,1e999]}}}', value('/a~1b/m~0n//1', 21))
    assert(refusal(`{"${'k'.repeat(10_000)}":1e999}`).path.length < 600)
  })
})

suite('rejects syntax errors, with the byte offset', () => {
  test('text that is not JSON', () => {
    for (const [text, path, offset] of [
      ['', '', 0],
      ['  ', '', 2],
      ['{"a":1,}', '', 7],
      ['[1,]', '/1', 3],
      ['[1 2]', '', 3],
      ['{"a" 1}', '/a', 5],
      ['{a:1}', '', 1],
      ["{'a':1}", '', 1],
      ['{"a":1', '', 6],
      ['[01]', '', 2],
      ['[1.]', '', 2],
      ['[.5]', '/0', 1],
      ['[+1]', '/0', 1],
      ['-', '', 0],
      ['tru', '', 0],
      ['NaN', '', 0],
      ['{} {}', '', 3],
      ['"abc', '', 4],
      ['"\\x"', '', 1],
      ['"\\u12g4"', '', 1],
      ['["a\nb"]', '/0', 3],
      ['["\0"]', '/0', 2],
      ['{"é":nul}', '/é', 6],
      ['\u00a01', '', 0],
    ] as const) {
      assertRefused(text, { kind: 'syntax', path, offset })
    }
  })

  test('invalid UTF-8, and a byte order mark', () => {
    assertRefused(Buffer.from([0x22, 0xc3, 0x28, 0x22]), { kind: 'syntax', path: '', offset: 1 })
    assertRefused(Buffer.from([0x22, 0x61, 0xff]), { kind: 'syntax', path: '', offset: 2 })
    assertRefused(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), {
      kind: 'syntax',
      path: '',
      offset: 1,
    })
    assertRefused('\ufeff{}', { kind: 'syntax', path: '', offset: 0 })
  })
})

suite('for any bytes', () => {
  /** Pieces of JSON in random order come closer to the edges of the grammar than random letters. */
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '"b":',
    '1',
    '-',
    '.5',
    'e9',
    '0',
    'null',
  ]
  const almostJson = fc
    .array(fc.constantFrom(...pieces, 'true', ' ', '\\', '\\u0000', '\\ud800', '\\n', 'é', '\n'), {
      maxLength: 12,
    })
    .map((parts) => Buffer.from(parts.join('')))
  const damagedJson = fc.tuple(looseText, fc.nat(), fc.nat(255)).map(([text, position, byte]) => {
    const bytes = Buffer.from(text)
    bytes[position % bytes.length] = byte
    return bytes
  })
  const anyBytes = fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes))

  test('throws nothing, and rejects whatever JSON.parse rejects', () => {
    fc.assert(
      fc.property(fc.oneof(almostJson, damagedJson, anyBytes), (bytes) => {
        let expected: unknown
        let isJson = true
        try {
          expected = JSON.parse(bytes.toString('utf8'))
        } catch {
          isJson = false
        }
        const { value, fault } = parseStrictJson(bytes)
        if (fault) {
          assert(fault.offset >= 0 && fault.offset <= bytes.length)
          // A syntax error may come after an invalid value, but never the other way round.
          if (fault.kind === 'syntax') assert(!isJson || bytes.toString('utf8').includes('\ufffd'))
        } else {
          assert.deepEqual(value, expected)
          assert(isJson)
        }
      }),
      { numRuns: rounds(1_000, 3_000) },
    )
  })
})

test('an escaped key is never mistaken for a key that was read before', () => {
  const read = (text: string) => JSON.stringify(parse(text))
  for (const [before, after] of [
    ['{"a":1,"\\\\":2}', '{"a":1,"\\"":2}'],
    ['{"a":1,"x\\\\":2}', '{"a":1,"x\\"":2}'],
    ['{"":[],"\\\\":{}}', '{"":[],"\\"":{},"\\"\\"":0}'],
  ] as const) {
    // Twice, so that the engine has learned the shape.
    for (const text of [before, before, after]) assert.equal(read(text), text)
  }
})

test('reading key by key gives what was written', () => {
  const anyText = fc.string({ unit: fc.constantFrom('"', '\\', '\n', 'a', 'é', ' ', '{', ',') })
  const { value: anyValue } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, false, 0, -1, 1.5, 100),
      anyText,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(anyText, tie('value'), { maxKeys: 3 }),
    ),
  }))
  fc.assert(
    fc.property(anyValue, fc.constantFrom('', ' ', '\t'), (value, indent) => {
      const text = JSON.stringify([value, '\\'], null, indent)
      assert.equal(JSON.stringify(parse(text)), JSON.stringify([value, '\\']))
    }),
  )
})

test('the first invalid byte is found in a text of any length', () => {
  for (const valid of ['', 'é'.repeat(3_000), '漢'.repeat(5_001), `a${'😀'.repeat(4_000)}`]) {
    const before = Buffer.from(valid)
    for (const bad of [[0xff], [0x80, 0x80, 0x80, 0x80, 0x80], [0xf0, 0x9f]]) {
      for (const rest of ['', 'x', '😀'.repeat(2_000)]) {
        const bytes = Buffer.concat([before, Buffer.from(bad), Buffer.from(rest)])
        assert.equal(findInvalidUtf8(bytes)?.offset, before.length)
      }
    }
    assert.equal(findInvalidUtf8(before), null)
  }
})
