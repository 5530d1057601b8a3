import assert from 'node:assert/strict'
import { crc32, createDeflateRaw } from 'node:zlib'
import { compressChunks } from './compress-chunks.ts'

/** A chunk is valid until the next one is requested. */
export type ZipFile = { name: string; chunks: AsyncIterable<Buffer> | Iterable<Buffer> }

/** What the directory at the end of the archive says about a file. */
type Entry = { name: Buffer; crc: number; compressed: number; size: number; offset: number }

/** The fastest level, as for downloads with gzip. */
const DEFLATE_LEVEL = 1
/** Larger files and archives would need ZIP64. */
const BYTES_MAX = 0xffff_fffe
const ENTRIES_MAX = 0xfffe
const VERSION = 20
const MADE_BY_UNIX = 3 << 8
/** The size and the checksum follow the data, and the name is UTF-8. */
const FLAGS = 0x0808
const DEFLATE = 8
const READABLE_FILE = (0o100644 << 16) >>> 0

/**
 * Writes a ZIP archive while its files are read, so that only one chunk is in memory. Names are relative
 * paths with slashes. All files have the same time, in UTC.
 */
export async function* zipFiles(
  files: AsyncIterable<ZipFile>,
  modifiedAt: Date,
): AsyncGenerator<Buffer, void, void> {
  const time = dosTime(modifiedAt)
  const entries: Entry[] = []
  let offset = 0
  for await (const { name, chunks } of files) {
    const entry: Entry = { name: Buffer.from(name), crc: 0, compressed: 0, size: 0, offset }
    const header = localHeader(entry, time)
    yield header
    for await (const piece of compressChunks(measureChunks(entry, chunks), newDeflate())) {
      entry.compressed += piece.length
      yield piece
    }
    const descriptor = dataDescriptor(entry)
    yield descriptor
    offset += header.length + entry.compressed + descriptor.length
    entries.push(entry)
  }
  assert(entries.length <= ENTRIES_MAX && offset <= BYTES_MAX, 'the archive needs no ZIP64')
  const directory = Buffer.concat(entries.map((entry) => directoryHeader(entry, time)))
  yield Buffer.concat([directory, endOfDirectory(entries.length, directory.length, offset)])
}

const newDeflate = () => createDeflateRaw({ level: DEFLATE_LEVEL })

async function* measureChunks(entry: Entry, chunks: ZipFile['chunks']): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    entry.crc = crc32(chunk, entry.crc)
    entry.size += chunk.length
    assert(entry.size <= BYTES_MAX, 'the file needs no ZIP64')
    yield chunk
  }
}

function localHeader({ name }: Entry, time: number): Buffer {
  const header = Buffer.alloc(30)
  header.writeUInt32LE(0x04034b50, 0)
  writeShared(header, 4, time)
  header.writeUInt16LE(name.length, 26)
  return Buffer.concat([header, name])
}

function dataDescriptor(entry: Entry): Buffer {
  const descriptor = Buffer.alloc(16)
  descriptor.writeUInt32LE(0x08074b50, 0)
  writeSizes(descriptor, 4, entry)
  return descriptor
}

function directoryHeader(entry: Entry, time: number): Buffer {
  const header = Buffer.alloc(46)
  header.writeUInt32LE(0x02014b50, 0)
  header.writeUInt16LE(MADE_BY_UNIX | VERSION, 4)
  writeShared(header, 6, time)
  writeSizes(header, 16, entry)
  header.writeUInt16LE(entry.name.length, 28)
  header.writeUInt32LE(READABLE_FILE, 38)
  header.writeUInt32LE(entry.offset, 42)
  return Buffer.concat([header, entry.name])
}

function endOfDirectory(count: number, bytes: number, offset: number): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(bytes, 12)
  end.writeUInt32LE(offset, 16)
  return end
}

/** Version, flags, method and time, which both headers of a file have. */
function writeShared(header: Buffer, at: number, time: number): void {
  header.writeUInt16LE(VERSION, at)
  header.writeUInt16LE(FLAGS, at + 2)
  header.writeUInt16LE(DEFLATE, at + 4)
  header.writeUInt32LE(time, at + 6)
}

function writeSizes(header: Buffer, at: number, { crc, compressed, size }: Entry): void {
  header.writeUInt32LE(crc, at)
  header.writeUInt32LE(compressed, at + 4)
  header.writeUInt32LE(size, at + 8)
}

/** The format supports times from 1980 to 2107, in steps of two seconds. */
function dosTime(at: Date): number {
  const year = Math.min(Math.max(at.getUTCFullYear(), 1980), 2107)
  const date = ((year - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()
  const seconds = Math.floor(at.getUTCSeconds() / 2)
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | seconds
  return ((date << 16) | time) >>> 0
}
