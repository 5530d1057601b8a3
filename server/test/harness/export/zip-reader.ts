import assert from 'node:assert/strict'
import { crc32, inflateRawSync } from 'node:zlib'

export type ZipEntry = { name: string; bytes: Buffer; modifiedAt: string }

/**
 * Reads a ZIP archive, and checks everything that a strict reader could refuse: that the headers of a file agree,
 * that files follow each other without a gap, and that sizes and checksums are right.
 */
export function readZip(archive: Buffer): ZipEntry[] {
  const end = archive.length - 22
  assert.equal(archive.readUInt32LE(end), 0x06054b50, 'the archive ends with its directory')
  assert.deepEqual([...archive.subarray(end + 4, end + 8)], [0, 0, 0, 0])
  const count = archive.readUInt16LE(end + 8)
  assert.equal(archive.readUInt16LE(end + 10), count)
  const directory = archive.readUInt32LE(end + 16)
  assert.equal(directory + archive.readUInt32LE(end + 12), end)
  const entries: ZipEntry[] = []
  let at = directory
  let offset = 0
  for (let nth = 0; nth < count; nth += 1) {
    assert.equal(archive.readUInt32LE(at), 0x02014b50)
    assert.equal(archive.readUInt32LE(at + 42), offset, 'files follow each other')
    const nameLength = archive.readUInt16LE(at + 28)
    assert.deepEqual([archive.readUInt16LE(at + 30), archive.readUInt16LE(at + 32)], [0, 0])
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const shared = archive.subarray(at + 6, at + 16)
    const sizes = archive.subarray(at + 16, at + 28)
    offset = readEntry(archive, { offset, name, shared, sizes }, (bytes) => {
      entries.push({ name, bytes, modifiedAt: timeText(archive.readUInt32LE(at + 12)) })
    })
    at += 46 + nameLength
  }
  assert.deepEqual([at, offset], [end, directory])
  return entries
}

/** Returns where the next file starts. */
function readEntry(
  archive: Buffer,
  { offset, name, shared, sizes }: { offset: number; name: string; shared: Buffer; sizes: Buffer },
  add: (bytes: Buffer) => void,
): number {
  assert.equal(archive.readUInt32LE(offset), 0x04034b50)
  assert.deepEqual(archive.subarray(offset + 4, offset + 14), shared)
  // Sizes and checksum follow the data.
  assert.deepEqual(archive.subarray(offset + 14, offset + 26), Buffer.alloc(12))
  const nameLength = archive.readUInt16LE(offset + 26)
  assert.equal(archive.toString('utf8', offset + 30, offset + 30 + nameLength), name)
  const start = offset + 30 + nameLength + archive.readUInt16LE(offset + 28)
  const descriptor = start + sizes.readUInt32LE(4)
  assert.equal(archive.readUInt32LE(descriptor), 0x08074b50)
  assert.deepEqual(archive.subarray(descriptor + 4, descriptor + 16), sizes)
  assert.equal(shared.readUInt16LE(4), 8, 'the method is deflate')
  const bytes = inflateRawSync(archive.subarray(start, descriptor))
  assert.deepEqual([bytes.length, crc32(bytes)], [sizes.readUInt32LE(8), sizes.readUInt32LE(0)])
  add(bytes)
  return descriptor + 16
}

function timeText(time: number): string {
  const part = (shift: number, bits: number) =>
    String((time >>> shift) & (2 ** bits - 1)).padStart(2, '0')
  const year = 1980 + (time >>> 25)
  return `${year}-${part(21, 4)}-${part(16, 5)}T${part(11, 5)}:${part(5, 6)}:${String((time & 31) * 2).padStart(2, '0')}`
}
