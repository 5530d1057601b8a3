import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawQrCode } from '../src/pages/second-factor/qr-code.ts'

/**
 * Reads a code back, written from the standard and not from the drawing: it takes the version and the mask
 * from the code itself, and checks that every block is a word of the Reed-Solomon code.
 */
function readQrCode({ size, dark }: { size: number; dark: Uint8Array }): string {
  const at = (x: number, y: number) => dark[y * size + x] ?? 0
  const version = (size - 17) / 4
  for (const [x, y] of [
    [0, 0],
    [size - 7, 0],
    [0, size - 7],
  ] as const) {
    assert.deepEqual(rowsOf(x, y, 7), FINDER)
  }
  const near = [0, 1, 2, 3, 4, 5, 7, 8]
    .map((x) => at(x, 8))
    .concat([7, 5, 4, 3, 2, 1, 0].map((y) => at(8, y)))
  const far = [1, 2, 3, 4, 5, 6, 7]
    .map((y) => at(8, size - y))
    .concat([8, 7, 6, 5, 4, 3, 2, 1].map((x) => at(size - x, 8)))
  assert.deepEqual(near, far, 'both copies of the format are the same')
  const format = Number.parseInt(near.join(''), 2) ^ 0b101010000010010
  assert.equal(format >>> 13, 0b01, 'level L')
  assert(FORMATS.includes(format), 'the format is a word of its code')
  const mask = (format >>> 10) & 7
  const bits: number[] = []
  for (let column = size - 1, isUp = true; column > 0; column -= 2, isUp = !isUp) {
    if (column === 6) column = 5
    for (let row = 0; row < size; row += 1) {
      const y = isUp ? size - 1 - row : row
      for (const x of [column, column - 1]) {
        if (!isPattern(x, y, version)) bits.push(at(x, y) ^ (isFlipped(mask, y, x) ? 1 : 0))
      }
    }
  }
  const bytes = (bits.join('').match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))
  return textOf(version, bytes)

  function rowsOf(left: number, top: number, width: number): string[] {
    const range = Array.from({ length: width }, (_, index) => index)
    return range.map((dy) => range.map((dx) => at(left + dx, top + dy)).join(''))
  }
}

const FINDER = ['1111111', '1000001', '1011101', '1011101', '1011101', '1000001', '1111111']
/** Every word of the (15,5) code: multiples of its generator. */
const FORMATS = Array.from({ length: 32 }, (_, value) => {
  let word = 0
  for (let bit = 0; bit < 5; bit += 1) if ((value >> bit) & 1) word ^= 0b10100110111 << bit
  return word
})
/** ISO/IEC 18004, annex E. */
const ALIGNMENT: Record<number, number[]> = {
  1: [],
  2: [6, 18],
  3: [6, 22],
  4: [6, 26],
  5: [6, 30],
  6: [6, 34],
}
/** ISO/IEC 18004, table 9, level L: blocks and bytes of data in each, and check bytes per block. */
const STRUCTURE: Record<number, [check: number, ...lengths: number[]]> = {
  1: [7, 19],
  2: [10, 34],
  3: [15, 55],
  4: [20, 80],
  5: [26, 108],
  6: [18, 68, 68],
}

function isPattern(x: number, y: number, version: number): boolean {
  const size = version * 4 + 17
  if (x === 6 || y === 6) return true
  if (y < 9 && (x < 9 || x >= size - 8)) return true
  if (x < 9 && y >= size - 8) return true
  const centers = ALIGNMENT[version] ?? []
  const last = centers.at(-1)
  return centers.some((centerY) =>
    centers.some((centerX) => {
      const isFinder =
        (centerX === 6 && (centerY === 6 || centerY === last)) ||
        (centerY === 6 && centerX === last)
      return !isFinder && Math.abs(x - centerX) <= 2 && Math.abs(y - centerY) <= 2
    }),
  )
}

function isFlipped(mask: number, i: number, j: number): boolean {
  const rules = [
    (i + j) % 2,
    i % 2,
    j % 3,
    (i + j) % 3,
    (Math.floor(i / 2) + Math.floor(j / 3)) % 2,
    ((i * j) % 2) + ((i * j) % 3),
    (((i * j) % 2) + ((i * j) % 3)) % 2,
    (((i + j) % 2) + ((i * j) % 3)) % 2,
  ]
  return rules[mask] === 0
}

function textOf(version: number, bytes: readonly number[]): string {
  const [check, ...lengths] = STRUCTURE[version] ?? [0]
  const blocks: number[][] = lengths.map(() => [])
  const source = bytes.values()
  for (let index = 0; index < Math.max(...lengths); index += 1) {
    for (const [number, block] of blocks.entries()) {
      if (index < (lengths[number] ?? 0)) block.push(source.next().value ?? 0)
    }
  }
  const data = blocks.map((block) => [...block])
  for (let index = 0; index < check; index += 1) {
    for (const block of blocks) block.push(source.next().value ?? 0)
  }
  for (const block of blocks) assertWord(block, check)
  const bits = data
    .flat()
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('')
  assert.equal(bits.slice(0, 4), '0100', 'bytes')
  const length = Number.parseInt(bits.slice(4, 12), 2)
  const text = bits.slice(12, 12 + 8 * length).match(/.{8}/g) ?? []
  return Buffer.from(text.map((byte) => Number.parseInt(byte, 2))).toString()
}

const EXP: number[] = []
for (let power = 0, value = 1; power < 255; power += 1) {
  EXP.push(value)
  value = value >= 128 ? (value * 2) ^ 285 : value * 2
}

/** The generator's roots are roots of the word. */
function assertWord(block: readonly number[], check: number): void {
  for (let root = 0; root < check; root += 1) {
    const sum = block.reduce((result, byte, index) => {
      if (byte === 0) return result
      const power = EXP.indexOf(byte) + root * (block.length - 1 - index)
      return result ^ (EXP[power % 255] ?? 0)
    }, 0)
    assert.equal(sum, 0, `syndrome ${root}`)
  }
}

test('a QR code of any length can be read back', () => {
  const lengths = [1, 17, 18, 32, 33, 53, 54, 78, 79, 106, 107, 120, 134]
  for (const length of lengths) {
    const text = Array.from({ length }, (_, at) =>
      String.fromCodePoint(33 + ((at * 31 + length) % 90)),
    ).join('')
    const code = drawQrCode(text)
    assert(code)
    assert.equal(readQrCode(code), text, `${length} bytes`)
  }
})

test('a QR code is as small as possible', () => {
  const sizes = [17, 18, 32, 33, 106, 107, 134].map(
    (length) => drawQrCode('x'.repeat(length))?.size,
  )
  assert.deepEqual(sizes, [21, 25, 25, 29, 37, 41, 41])
})

test('a QR code contains the UTF-8 bytes of any text', () => {
  const text = 'otpauth://totp/Annals:zoë@example.com?secret=ABC&issuer=Annals ✓'
  const code = drawQrCode(text)
  assert(code)
  assert.equal(readQrCode(code), text)
})

test('a text that is too long has no QR code', () => {
  assert.equal(drawQrCode('x'.repeat(135)), null)
})
