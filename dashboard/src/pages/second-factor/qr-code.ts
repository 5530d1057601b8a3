/** Check bytes per block and blocks, by version, at level L of error correction: a screen is a clean surface. */
const CHECK_BYTES = [7, 10, 15, 20, 26, 18]
const BLOCKS = [1, 1, 1, 1, 1, 2]
/** The mode and the length, and the end of the data. */
const HEADER_BYTES = 2
/** The bits of level L in the format. */
const LEVEL_BITS = 1
const MASKS: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
]

/** A square of dark (1) and light (0) modules, row by row. */
type QrCode = { size: number; dark: Uint8Array }
/** While it is drawn: which modules are patterns, which contain no data. */
type Canvas = QrCode & { fixed: Uint8Array }

/** Draws a QR code (ISO/IEC 18004) with the bytes of a text. Null for more than 134 bytes. */
export function drawQrCode(text: string): QrCode | null {
  const bytes = new TextEncoder().encode(text)
  const index = BLOCKS.findIndex((_, at) => bytes.length <= dataLength(at + 1) - HEADER_BYTES)
  if (index === -1) return null
  const version = index + 1
  const canvas = drawPatterns(version)
  drawData(canvas, interleave(version, dataBytes(version, bytes)))
  const masked = MASKS.keys().map((mask) => withMask(canvas, mask))
  return masked.reduce((best, next) => (penaltyOf(next) < penaltyOf(best) ? next : best))
}

function dataLength(version: number): number {
  return totalLength(version) - (CHECK_BYTES[version - 1] ?? 0) * (BLOCKS[version - 1] ?? 0)
}

function totalLength(version: number): number {
  const { fixed } = drawPatterns(version)
  return Math.floor(fixed.filter((isFixed) => isFixed === 0).length / 8)
}

/** The header (mode, length), the text, and padding up to the length of the version. */
function dataBytes(version: number, bytes: Uint8Array): number[] {
  const texts = [bytes.length, ...bytes].map((byte) => byte.toString(2).padStart(8, '0'))
  const bits = `0100${texts.join('')}0000`
  const data = (bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))
  const missing = dataLength(version) - data.length
  return [...data, ...Array.from({ length: missing }, (_, at) => (at % 2 === 0 ? 0xec : 0x11))]
}

/** Splits the data into blocks, appends check bytes to each, and takes a byte of each block in turn. */
function interleave(version: number, data: readonly number[]): number[] {
  const count = BLOCKS[version - 1] ?? 1
  const divisor = divisorOf(CHECK_BYTES[version - 1] ?? 0)
  const length = data.length / count
  const blocks = Array.from({ length: count }, (_, at) =>
    data.slice(at * length, (at + 1) * length),
  )
  const checks = blocks.map((block) => remainderOf(block, divisor))
  return [...inTurn(blocks), ...inTurn(checks)]
}

function inTurn(blocks: readonly number[][]): number[] {
  return (blocks[0] ?? []).flatMap((_, at) => blocks.map((block) => block[at] ?? 0))
}

/** Reed-Solomon in the field of 256 elements with the polynomial 0x11d. */
function multiply(left: number, right: number): number {
  let product = 0
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d)
    product ^= ((right >>> bit) & 1) * left
  }
  return product
}

function divisorOf(degree: number): number[] {
  let result = [1]
  for (let power = 0, root = 1; power < degree; power += 1, root = multiply(root, 2)) {
    const scaled = [0, ...result.map((coefficient) => multiply(coefficient, root))]
    result = scaled.map((coefficient, at) => coefficient ^ (result[at] ?? 0))
  }
  return result.slice(1)
}

function remainderOf(block: readonly number[], divisor: readonly number[]): number[] {
  let rest = divisor.map(() => 0)
  for (const byte of block) {
    const factor = byte ^ (rest[0] ?? 0)
    rest = divisor.map((coefficient, at) => (rest[at + 1] ?? 0) ^ multiply(coefficient, factor))
  }
  return rest
}

function drawPatterns(version: number): Canvas {
  const size = version * 4 + 17
  const area = size * size
  const canvas = { size, dark: new Uint8Array(area), fixed: new Uint8Array(area) }
  for (let at = 0; at < size; at += 1) {
    setFixed(canvas, 6, at, at % 2 === 0)
    setFixed(canvas, at, 6, at % 2 === 0)
  }
  const far = size - 4
  for (const [x, y] of [
    [3, 3],
    [far, 3],
    [3, far],
  ] as const)
    drawRings(canvas, x, y, 4)
  if (version > 1) drawRings(canvas, size - 7, size - 7, 2)
  drawFormat(canvas, 0)
  return canvas
}

function setFixed({ size, dark, fixed }: Canvas, x: number, y: number, isDark: boolean): void {
  if (x < 0 || y < 0 || x >= size || y >= size) return
  dark[y * size + x] = isDark ? 1 : 0
  fixed[y * size + x] = 1
}

/** A finder with radius 4, including its light border, or an alignment pattern with radius 2. */
function drawRings(canvas: Canvas, centerX: number, centerY: number, radius: number): void {
  for (let dy = -radius; dy <= radius; dy += 1) {
    for (let dx = -radius; dx <= radius; dx += 1) {
      const ring = Math.max(Math.abs(dx), Math.abs(dy))
      const isDark = radius === 4 ? ring !== 2 && ring !== 4 : ring !== 1
      setFixed(canvas, centerX + dx, centerY + dy, isDark)
    }
  }
}

/** Written twice: around the first finder pattern, and beside the other two. */
function drawFormat(canvas: Canvas, mask: number): void {
  const value = (LEVEL_BITS << 3) | mask
  // The check bits are the remainder of a division by a polynomial.
  let rest = value
  for (let bit = 0; bit < 10; bit += 1) rest = (rest << 1) ^ ((rest >>> 9) * 0x537)
  const format = ((value << 10) | rest) ^ 0x5412
  const { size } = canvas
  for (let bit = 0; bit < 15; bit += 1) {
    const isDark = ((format >>> bit) & 1) === 1
    const near = bit < 6 ? bit : bit < 8 ? bit + 1 : 14 - bit + (bit === 8 ? 1 : 0)
    if (bit < 8) setFixed(canvas, 8, near, isDark)
    else setFixed(canvas, near, 8, isDark)
    if (bit < 8) setFixed(canvas, size - 1 - bit, 8, isDark)
    else setFixed(canvas, 8, size - 15 + bit, isDark)
  }
  setFixed(canvas, 8, size - 8, true)
}

/** Zigzags upward and downward in columns of two modules, from the right, around the patterns. */
function drawData({ size, dark, fixed }: Canvas, bytes: readonly number[]): void {
  let bit = 0
  for (let right = size - 1; right >= 1; right -= right === 8 ? 3 : 2) {
    const isUpward = ((right + 1) & 2) === 0
    for (let step = 0; step < size * 2; step += 1) {
      const row = Math.floor(step / 2)
      const at = (isUpward ? size - 1 - row : row) * size + right - (step % 2)
      if (fixed[at] === 1) continue
      dark[at] = ((bytes[bit >>> 3] ?? 0) >>> (7 - (bit & 7))) & 1
      bit += 1
    }
  }
}

function withMask({ size, dark, fixed }: Canvas, mask: number): QrCode {
  const isFlipped = MASKS[mask] ?? (() => false)
  const masked = dark.map((value, at) =>
    fixed[at] === 0 && isFlipped(at % size, Math.floor(at / size)) ? 1 - value : value,
  )
  const canvas = { size, dark: masked, fixed: new Uint8Array(fixed) }
  drawFormat(canvas, mask)
  return { size, dark: masked }
}

/** How hard the code is to scan: long runs of a color, and look-alikes of finders. */
function penaltyOf({ size, dark }: QrCode): number {
  const indexes = Array.from({ length: size }, (_, at) => at)
  const rows = indexes.map((y) => dark.subarray(y * size, (y + 1) * size).join(''))
  const columns = indexes.map((x) => rows.map((row) => row.charAt(x)).join(''))
  const found = [...rows, ...columns].flatMap((line) => [
    ...line.matchAll(/0{5,}|1{5,}/g).map(([run]) => run.length - 2),
    ...line.matchAll(/(?=10111010000|00001011101)/g).map(() => 40),
  ])
  return found.reduce((sum, points) => sum + points, 0)
}
