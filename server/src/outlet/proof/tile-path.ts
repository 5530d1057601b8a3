import { TILE_WIDTH } from '../../ledger/tree/tile.ts'

/** A tile of hashes, or of entries, and how many of them are requested. */
export type TileRequest = { level: number; isEntries: boolean; number: number; width: number }

const PATH =
  /^(?<level>0|[1-9]\d?|entries)\/(?<number>(?:x\d{3}\/){0,5}\d{3})(?:\.p\/(?<width>[1-9]\d{0,2}))?$/
const LEVEL_MAX = 63

/**
 * Parses the end of the path of a tile, as C2SP tlog-tiles defines it: `<L>/<N>[.p/<W>]` or
 * `entries/<N>[.p/<W>]`. Null for any other text, such as a number with needless zeros.
 */
export function parseTilePath(text: string): TileRequest | null {
  const { level = '', number = '', width } = PATH.exec(text)?.groups ?? {}
  if (level === '' || number.startsWith('x000/')) return null
  const isEntries = level === 'entries'
  const request = {
    level: isEntries ? 0 : Number(level),
    isEntries,
    number: Number(number.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  }
  const isPartial = width !== undefined
  if (request.level > LEVEL_MAX || (isPartial && request.width >= TILE_WIDTH)) return null
  return Number.isSafeInteger(request.number) ? request : null
}

/** Whether a tree of this size has the requested hashes. */
export function isInTree({ level, number, width }: TileRequest, size: number): boolean {
  return Math.floor(size / TILE_WIDTH ** level) >= number * TILE_WIDTH + width
}
