import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readZip } from '../../test/harness/export/zip-reader.ts'
import { type ZipFile, zipFiles } from './zip.ts'

const AT = new Date('2026-03-01T13:45:59Z')

async function archiveOf(files: readonly ZipFile[]): Promise<Buffer> {
  async function* each() {
    yield* files
  }
  return Buffer.concat(await Array.fromAsync(zipFiles(each(), AT)))
}

const FILES = [
  { name: 'events.jsonl', bytes: Buffer.from('{"a":1}\n'.repeat(100_000)) },
  { name: 'random', bytes: randomBytes(300_000) },
  { name: 'empty', bytes: Buffer.alloc(0) },
  { name: 'folder/größe 😀.txt', bytes: Buffer.from('ü') },
]

/** Like an export, which reuses the buffer of a chunk. */
async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer> {
  const buffer = Buffer.alloc(70_000)
  for (let at = 0; at < bytes.length; at += buffer.length) {
    yield buffer.subarray(0, bytes.copy(buffer, 0, at))
  }
}

const archive = await archiveOf(FILES.map(({ name, bytes }) => ({ name, chunks: chunksOf(bytes) })))

test('a reader gets every file with its name, bytes and time', () => {
  assert.deepEqual(
    readZip(archive),
    FILES.map((file) => ({ ...file, modifiedAt: '2026-03-01T13:45:58' })),
  )
})

test('an archive without files has an empty directory', async () => {
  assert.deepEqual(readZip(await archiveOf([])), [])
})

test('a file that fails ends the archive with its error', async () => {
  async function* failing(): AsyncGenerator<Buffer> {
    yield Buffer.from('a')
    throw new Error('the disk is gone')
  }
  await assert.rejects(archiveOf([{ name: 'a', chunks: failing() }]), /the disk is gone/)
})

const PYTHON = spawnSync('python3', ['-c', 'import zipfile']).status === 0
const skip = PYTHON ? false : 'python3 is not installed'

test('Python finds no error in an archive', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'annals-zip-'))
  try {
    const file = join(folder, 'pack.zip')
    writeFileSync(file, archive)
    const { status, stdout, stderr } = spawnSync('python3', ['-m', 'zipfile', '-t', file], {
      encoding: 'utf8',
    })
    assert.deepEqual([status, stdout.trim()], [0, 'Done testing'], stderr)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
