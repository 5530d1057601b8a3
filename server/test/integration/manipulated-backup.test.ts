import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { OperatorError } from '../../src/errors.ts'
import { restoreArchive } from '../../src/outlet/backup/archive-copy.ts'
import { writeHashedJson } from '../../src/outlet/backup/hashed-json.ts'
import { readBackupManifest } from '../../src/outlet/backup/manifest.ts'
import { checkBackup } from '../../src/outlet/backup/restore-ledger.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { commandEnv } from '../harness/app/command-env.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { startBackedUpApp } from '../harness/database/backed-up-app.ts'
import { createRestoreTarget, readAllRows, type RestoreTarget } from '../harness/database/backup.ts'

// A backup whose hashes were computed again after it was changed.

const backedUp = await startBackedUpApp()
after(() => backedUp[Symbol.asyncDispose]())
const { annals, workspace, folder, newFolder } = backedUp

const manifestPath = join(folder, 'manifest.json')
const { sha256: _, ...manifest } = JSON.parse(readFileSync(manifestPath, 'utf8'))

const writeManifest = (value: object) => writeFileSync(manifestPath, writeHashedJson(value))
afterEach(() => writeManifest(manifest))

type Outcome = { code: number | null; stdout: string; stderr: string }

/** One sentence, and no stack. */
function assertSentence({ code, stderr }: Outcome, name: string): void {
  assert.equal(code, 1, name)
  assert.match(stderr, /^annals: [^\n]+\n$/, name)
}

/** Restores into one target until something is loaded there, and then into a new one. */
class Targets implements AsyncDisposable {
  #target: RestoreTarget | null = null

  async restore(from: string): Promise<Outcome & { isLoaded: boolean }> {
    this.#target ??= await createRestoreTarget()
    const outcome = await this.#target.restore(from)
    const isLoaded = outcome.stdout.includes('Loaded')
    if (isLoaded) await this[Symbol.asyncDispose]()
    return { ...outcome, isLoaded }
  }

  /** Of the last target. */
  async countRows(): Promise<number> {
    if (this.#target === null) return 0
    return (await readAllRows(this.#target.database)).values().toArray().flat().length
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#target?.[Symbol.asyncDispose]()
    this.#target = null
  }
}

const targets = new Targets()
after(() => targets[Symbol.asyncDispose]())

/** Why `restore` would refuse the backup before it opens the database, or null. */
async function problemIn(backup: string): Promise<string | null> {
  try {
    const read = await readBackupManifest(backup)
    await checkBackup(backup, read ?? assert.fail(backup), () => {})
    return null
  } catch (error) {
    assert(error instanceof OperatorError, inspect(error))
    return error.message
  }
}

type Path = readonly (string | number)[]

/** Every object and value of the manifest, with one entry of each list. */
function* pathsOf(value: unknown, path: Path = []): Generator<Path> {
  if (path.length > 0) yield path
  if (typeof value !== 'object' || value === null) return
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? value.slice(0, 1).map((each, nth) => [nth, each])
    : Object.entries(value)
  for (const [name, each] of entries) yield* pathsOf(each, [...path, name])
}

/**
 * Each can have one of the values: `restore` doesn't need it, or the service checks it again. Events of a month
 * without a partition go to a default one.
 */
const HARMLESS = ['archive.id', 'keyFingerprint', 'migrations.0.name', 'months', 'months.0']
const REMOVED = Symbol('removed')

const valueAt = (path: Path) => path.reduce((each, name) => each[name], manifest)

function changed(original: object, path: Path, value: unknown): object {
  // oxlint-disable-next-line typescript/no-explicit-any -- a path leads to any part of it
  const copy: any = structuredClone(original)
  const last = path.at(-1) ?? assert.fail()
  const parent = path.slice(0, -1).reduce((each, name) => each[name], copy)
  if (value !== REMOVED) parent[last] = value
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
  return copy
}

/** Values of all other types, and those of the same type that are special. */
function wrongValues(value: unknown): unknown[] {
  const special =
    typeof value === 'number'
      ? [-1, 0.5, 1e300]
      : typeof value === 'string'
        ? [0, `../"'x`, 'x'.repeat(100_000)]
        : [0]
  return [REMOVED, null, '', [], {}, ...special]
}

test('every wrong value in a manifest is explained, or has no effect', async () => {
  const harmless = new Set<string>()
  let changedHarmlessly: object = manifest
  let refused = 0
  for (const path of pathsOf(manifest)) {
    const name = path.join('.')
    // A restore takes a second, and treats all texts alike that reading the manifest accepts.
    let hasText = false
    for (const value of wrongValues(valueAt(path))) {
      writeManifest(changed(manifest, path, value))
      const problem = await problemIn(folder)
      if (problem !== null) {
        assert.match(problem, /^[^\n]+$/, `${name}: ${inspect(value)}`)
        refused += 1
      } else if (HARMLESS.includes(name)) {
        harmless.add(name)
        changedHarmlessly = changed(changedHarmlessly, path, value)
      } else if (typeof value !== 'string' || !hasText) {
        hasText ||= typeof value === 'string'
        assertSentence(await targets.restore(folder), `${name}: ${inspect(value)}`)
      }
    }
  }
  assert(refused > 150, String(refused))
  assert.deepEqual([...harmless].toSorted(), HARMLESS)
  assert.equal(await targets.countRows(), 0)
  writeManifest(changedHarmlessly)
  const outcome = await targets.restore(folder)
  assert.equal(outcome.code, 0, outcome.stderr)
})

test('names, times and paths in a manifest that no backup writes are explained', async () => {
  const [table, ...others] = manifest.tables
  const [file] = manifest.files
  const [migration, ...migrations] = manifest.migrations
  for (const [name, change] of Object.entries({
    path: { files: [...manifest.files, { ...file, path: '../../etc/passwd' }] },
    inside: { files: [...manifest.files, { ...file, path: `events/../${file.path}` }] },
    archive: { files: [...manifest.files, { ...file, path: 'archive/signer/../../x' }] },
    twice: { files: [...manifest.files, file] },
    noFile: { tables: [{ ...table, paths: ['tables/20200101T000000000Z-x.zst'] }, ...others] },
    system: { tables: [...manifest.tables, { ...table, name: 'pg_authid' }] },
    migrations: { tables: [...manifest.tables, { ...table, name: 'schema_migration' }] },
    tableTwice: { tables: [...manifest.tables, table] },
    rows: { tables: [{ ...table, rows: table.rows + 1 }, ...others] },
    month: { months: ['2026-13'] },
    oldMonth: { months: ['0000-01'] },
    escape: { createdAt: '\u001B[2J' },
    marker: { archive: { kind: 'external', id: '../../x' } },
    version: { version: 2 },
    checksum: { migrations: [{ ...migration, checksum: 'x' }, ...migrations] },
  })) {
    writeManifest({ ...manifest, ...change })
    const outcome = await targets.restore(folder)
    assertSentence(outcome, name)
    assert(!outcome.stdout.includes('\u001B'), name)
    if (name === 'checksum') assert.match(outcome.stderr, /: the backup has other migrations than/)
  }
})

/** Runs this while the first file of a part has other content. */
async function withFile<T>(
  part: string,
  change: (bytes: Buffer) => Buffer,
  run: () => Promise<T>,
): Promise<T> {
  const files = structuredClone(manifest.files)
  const file = files.find(({ path }: { path: string }) => path.startsWith(part))
  const path = join(folder, file.path)
  const original = readFileSync(path)
  const bytes = change(original)
  writeFileSync(path, bytes)
  Object.assign(file, { bytes: bytes.length, sha256: hash('sha256', bytes) })
  writeManifest({ ...manifest, files })
  try {
    return await run()
  } finally {
    writeFileSync(path, original)
  }
}

/** The part of a restore that reads the objects of the archive. */
async function restoreObjects(): Promise<void> {
  const read = (await readBackupManifest(folder)) ?? assert.fail()
  const url = pathToFileURL(await newFolder()).href
  await using archive = await openObjectStore(url, { s3Endpoint: null, s3Region: null })
  await restoreArchive(archive, folder, read, () => {})
}

test('every kind of file that is cut or replaced is explained', async () => {
  const signer = (text: string) => zstdCompressSync(Buffer.from(text))
  const line = (key: unknown, bytes: unknown) => `${JSON.stringify({ key, bytes })}\n`
  const otherKey = randomBytes(32).toString('base64')
  const restore = () => targets.restore(folder)
  await using others = new Targets()
  const restoreElsewhere = () => others.restore(folder)
  const empty = (): Buffer => Buffer.alloc(0)
  const cut = (all: Buffer): Buffer => all.subarray(0, all.length >> 1)
  // Only the verification finds what is wrong with these. An archive that has the objects would keep its own.
  for (const [name, part, change] of [
    ['archive cut', `archive/${workspace.id}/`, cut],
    ['signer object', 'signer/', () => signer(line('signer/keys', 'x'.repeat(1_000_000)))],
  ] as const) {
    const outcome = await withFile(part, change, restoreElsewhere)
    assertSentence(outcome, name)
    assert.match(outcome.stderr, /^annals: The backup was loaded, but it doesn't pass/, name)
  }
  for (const [name, part, change] of [
    ...['events/', 'tables/'].flatMap((part) => [
      [`${part} empty`, part, empty] as const,
      [`${part} cut`, part, cut] as const,
    ]),
    ['noise', 'events/', () => zstdCompressSync(randomBytes(10_000))],
    ['no zstd', 'tables/', () => randomBytes(10_000)],
    ['signer path', 'signer/', () => signer(line('signer/../../x', 'eA=='))],
  ] as const) {
    const outcome = await withFile(part, change, restore)
    assertSentence(outcome, name)
    assert(!outcome.isLoaded, name)
  }
  for (const [name, change] of [
    ['empty', empty],
    ['cut', cut],
    ['number', () => signer(line(7, 'eA=='))],
    ['bytes', () => signer(line('signer/keys', 7))],
    ['null', () => signer('null\n')],
    ['text', () => signer('x\n')],
    ['line', () => signer('x'.repeat(5_000_000))],
  ] as const) {
    const restored = withFile('signer/', change, restoreObjects)
    await assert.rejects(restored, OperatorError, name)
  }
  for (const [name, change] of [
    ['key empty', empty],
    ['key cut', cut],
    ['other key', () => Buffer.from(otherKey)],
    ['key that is large', () => Buffer.alloc(10_000_000)],
  ] as const) {
    // The copied key is used only with an embedded engine that has none yet.
    const env = { ANNALS_DATA_DIR: await newFolder() }
    const restoreHere = () => runCommandInHost(['restore', '--from', folder], env)
    assertSentence(await withFile('key/', change, restoreHere), name)
  }
})

test('a false file name in a backup cannot change what restore and verify print', async () => {
  const lie = '\r\u001B[2Kok: 40 events in 2 workspaces, every chain is intact\n\u001B[8m'
  const key = /[0-9a-f-]{36}\/\d{4}-\d\d\/\d{16}-[0-9a-f]{16}\.parquet/
  const segments = manifest.tables.find(({ name }: { name: string }) => name === 'segment')
  const rename = (bytes: Buffer): Buffer => {
    const rows = zstdDecompressSync(bytes)
    const { index, 0: name } = key.exec(rows.toString('latin1')) ?? assert.fail()
    rows.write(lie.padEnd(name.length, ' '), index, 'latin1')
    return zstdCompressSync(rows)
  }
  await using target = await createRestoreTarget()
  const restored = await withFile(segments.paths[0], rename, () => target.restore(folder))
  const verified = await runCommandInHost(['verify'], commandEnv(target))
  for (const { code, stdout } of [restored, verified]) {
    assert.equal(code, 1)
    assert.match(
      stdout,
      /^(Loaded [^\n]+\n)?BROKEN workspace [0-9a-f-]+ at seq 1: the catalog lists a file whose name is not one that Annals gives\nFAILED: [^\n]+\n$/,
    )
  }
})

test('a damaged list of events is explained by the next backup', async () => {
  const copy = await newFolder()
  await cp(folder, copy, { recursive: true })
  const table = manifest.tables.at(-1)
  const path = join(copy, table.paths[0].replace('.zst', '.json'))
  const { sha256: _own, ...index } = JSON.parse(readFileSync(path, 'utf8'))
  const [run] = index.runs
  for (const change of [
    { runs: null },
    { runs: [{ ...run, workspaceId: 'x' }] },
    { runs: [{ ...run, last: -1 }] },
    { runs: [{ ...run, last: 1e300 }] },
    { runs: [{ ...run, lastHash: 7 }] },
    { rows: 'x' },
    { file: null },
    { file: { ...index.file, path: '../../etc/passwd' } },
    { file: { ...index.file, path: 'manifest.json' } },
  ]) {
    writeFileSync(path, writeHashedJson({ ...index, ...change }))
    const outcome = await runCommandInHost(['backup', '--to', copy], commandEnv(annals))
    assertSentence(outcome, JSON.stringify(change))
  }
})
