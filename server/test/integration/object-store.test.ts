import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { inspect, promisify } from 'node:util'
import { newId } from '../../src/platform/id.ts'
import {
  OBJECT_BYTES_MAX,
  type ObjectStore,
  StorageError,
} from '../../src/platform/object-store/object-store.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import type { S3Limits } from '../../src/platform/object-store/s3-store.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { listenAsMetadata, S3Server, setS3Environment } from '../harness/archive/s3-server.ts'

const MODULE = JSON.stringify(
  join(import.meta.dirname, '../../src/platform/object-store/open-object-store.ts'),
)
const PREFIX = 'annals/eu'
const QUICK: Partial<S3Limits> = {
  connectMsMax: 5_000,
  requestMsMax: 1_500,
  totalMsMax: 10_000,
  attemptsMax: 2,
}
const NO_S3 = { s3Endpoint: null, s3Region: null }
const LARGE = patterned(20_000_000, 7)

const metadata = await listenAsMetadata()
after(() => metadata.server.close())
setS3Environment(metadata)

/** Every address that this process connects to. */
const connected = new Set<string>()
diagnostics.subscribe('net.client.socket', (message) => {
  assert(typeof message === 'object' && message !== null && 'socket' in message)
  assert(message.socket instanceof Socket)
  message.socket.on('connectionAttempt', (ip: string) => connected.add(ip))
})

for (const kind of ['folder', 'S3'] as const) {
  suite(`a store in ${kind === 'folder' ? 'a folder' : 'S3'}`, () => {
    test('an object is read back byte for byte, with its size', async () => {
      await using archive = await openArchive(kind)
      const key = newKey()
      for (const bytes of [Buffer.from('one'), Buffer.alloc(0), patterned(70_000, 3)]) {
        await archive.store.put(key, bytes)
        assert.deepEqual(await archive.store.read(key), bytes)
        assert.deepEqual(await archive.store.stat(key), { bytes: bytes.length, readiness: 'ready' })
      }
    })

    test('a missing object is null, and deleting it succeeds', async () => {
      await using archive = await openArchive(kind)
      const key = newKey()
      assert.equal(await archive.store.read(key), null)
      assert.equal(await archive.store.stat(key), null)
      await archive.store.delete(key)
    })

    test('deletes only the given object', async () => {
      await using archive = await openArchive(kind)
      const [gone, kept] = [newKey(1), newKey(2)]
      await archive.store.put(gone, Buffer.from('gone'))
      await archive.store.put(kept, Buffer.from('kept'))
      await archive.store.delete(gone)
      assert.equal(await archive.store.read(gone), null)
      assert.deepEqual(await archive.store.read(kept), Buffer.from('kept'))
    })

    test('restoring a ready object is harmless', async () => {
      await using archive = await openArchive(kind)
      const key = newKey()
      await archive.store.put(key, Buffer.from('ready'))
      await archive.store.restore(key)
      assert.equal((await archive.store.stat(key))?.readiness, 'ready')
    })

    test('objects of different workspaces and months are separate', async () => {
      await using archive = await openArchive(kind)
      const keys = [1, 2, 3, 4].flatMap((month) => [1, 2, 3].map((seq) => newKey(seq, month)))
      await Promise.all(keys.map(async (key) => await archive.store.put(key, Buffer.from(key))))
      for (const key of keys) assert.equal(String(await archive.store.read(key)), key)
    })

    test('an object of 20 MB survives reopening the store', async () => {
      await using archive = await openArchive(kind)
      const key = newKey()
      await archive.store.put(key, LARGE)
      await using other = await archive.openAgain()
      assert.equal((await other.stat(key))?.bytes, LARGE.length)
      assert((await other.read(key))?.equals(LARGE))
    })

    test('the last complete write of a key wins, and no reader sees a mix', async () => {
      await using archive = await openArchive(kind)
      await using other = await archive.openAgain()
      const key = newKey()
      const [short, long] = [patterned(2_000_000, 1), patterned(9_000_000, 2)]
      await archive.store.put(key, short)
      for (let round = 0; round < 3; round += 1) {
        const writers = Promise.all([archive.store.put(key, short), other.put(key, long)])
        const seen = [await archive.store.read(key), await other.read(key)]
        await writers
        for (const bytes of [...seen, await archive.store.read(key)]) {
          assert(bytes !== null && (bytes.equals(short) || bytes.equals(long)), 'a whole object')
        }
      }
      await other.put(key, long)
      await archive.store.put(key, short)
      assert((await other.read(key))?.equals(short))
    })

    test('throws for a key that Annals never uses', async () => {
      await using archive = await openArchive(kind)
      const key = newKey()
      const wrong = ['', '/', `/${key}`, `../${key}`, `${key}/..`, key.replace('/', '/../')]
      for (const name of [...wrong, key.toUpperCase(), `${key}\n`, key.replace('-01/', '-13/')]) {
        await assert.rejects(archive.store.put(name, Buffer.from('x')), assert.AssertionError)
        await assert.rejects(archive.store.read(name), assert.AssertionError)
        await assert.rejects(archive.store.delete(name), assert.AssertionError)
      }
      const tooLarge = Buffer.allocUnsafe(OBJECT_BYTES_MAX + 1)
      await assert.rejects(archive.store.put(key, tooLarge), assert.AssertionError)
    })
  })
}

suite('a folder', () => {
  test('a program killed during a write leaves no object, and the next write removes its draft', async (t) => {
    await using archive = await openFolder()
    const script = `
      const { openObjectStore } = await import(${MODULE})
      globalThis.store = await openObjectStore(${JSON.stringify(archive.url)}, { s3Endpoint: null, s3Region: null })
      await store.put(${JSON.stringify(newKey())}, Buffer.from('x'))
      console.log('open')
      process.stdin.resume()`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script])
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    const [own, ...others] = archive.drafts().toSorted((a) => (a === archive.ownDrafts ? -1 : 1))
    assert(own === archive.ownDrafts && others.length === 1)
    const left = join(archive.root, '.drafts', String(others[0]))
    fs.writeFileSync(join(left, '1'), 'half of an obj')

    await using whileItLives = await archive.openAgain()
    await whileItLives.put(newKey(), Buffer.from('x'))
    assert(fs.existsSync(join(left, '1')), 'the draft of a living program stays')
    child.kill('SIGKILL')
    await once(child, 'exit')
    await using after = await archive.openAgain()
    await after.put(newKey(), Buffer.from('x'))
    assert(!fs.existsSync(left))
    assert(archive.drafts().includes(archive.ownDrafts), 'a living store keeps its drafts')
    assert.equal(await after.read(newKey()), null)
  })

  test('a failed write keeps the old object and leaves no draft', async () => {
    await using archive = await openFolder()
    const key = newKey()
    await archive.store.put(key, Buffer.from('old'))
    const script = `
      const { openObjectStore } = await import(${MODULE})
      await using store = await openObjectStore(${JSON.stringify(archive.url)}, { s3Endpoint: null, s3Region: null })
      const failure = await store.put(${JSON.stringify(key)}, Buffer.alloc(1e6)).catch((error) => error)
      const { readdirSync } = await import('node:fs')
      const drafts = readdirSync(${JSON.stringify(join(archive.root, '.drafts'))}, { recursive: true })
      const { cache } = (await import('node:module')).createRequire(import.meta.url)
      console.log(JSON.stringify({
        name: failure?.name, message: failure?.message, code: failure?.cause?.code,
        drafts: drafts.filter((name) => name.endsWith('/1')),
        sdk: Object.keys(cache).filter((name) => name.includes('@aws-sdk')),
      }))`
    // Limits the file size to this many blocks, which simulates a full disk.
    const shell = `ulimit -f 100 && exec "$0" --input-type=module -e "$1"`
    const { stdout } = await promisify(execFile)('sh', ['-c', shell, process.execPath, script])
    assert.deepEqual(JSON.parse(stdout), {
      name: 'StorageError',
      message: `The archive folder ${archive.root} can't be used (EFBIG).`,
      code: 'EFBIG',
      drafts: [],
      sdk: [],
    })
    assert.deepEqual(await archive.store.read(key), Buffer.from('old'))
  })

  test('only their owner can access files and folders', async () => {
    await using archive = await openFolder()
    const key = newKey()
    await archive.store.put(key, Buffer.from('private'))
    assert.equal(fs.statSync(join(archive.root, key)).mode & 0o777, 0o600)
    for (const folder of ['.', '.drafts', key.split('/')[0] ?? '', join(key, '..')]) {
      assert.equal(fs.statSync(join(archive.root, folder)).mode & 0o777, 0o700, folder)
    }
  })

  test('a folder that is not writable is a StorageError, and stays readable', async () => {
    await using archive = await openFolder()
    const key = newKey()
    await archive.store.put(key, Buffer.from('old'))
    await asOtherUser(archive.root, async () => {
      await assertStorageError(archive.store.put(newKey(2), Buffer.from('new')), /can't access/)
      await using other = await archive.openAgain()
      await assertStorageError(other.put(newKey(3), Buffer.from('new')), /can't access/)
      assert.deepEqual(await archive.store.read(key), Buffer.from('old'))
    })
  })

  test('a file instead of a folder is a StorageError', async () => {
    await using archive = await openFolder()
    const key = newKey()
    fs.writeFileSync(join(archive.root, key.split('/')[0] ?? ''), 'a file')
    await assertStorageError(
      archive.store.put(key, Buffer.from('x')),
      /a file where a folder is expected/,
    )
    await assertStorageError(archive.store.read(key), /a file where a folder is expected/)
    await assertStorageError(archive.store.stat(key), /a file where a folder is expected/)
    const below = `${pathToFileURL(join(archive.root, key.split('/')[0] ?? '')).href}/archive`
    await using other = await openObjectStore(below, NO_S3)
    await assertStorageError(other.put(key, Buffer.from('x')), /a file where a folder is expected/)
  })

  test('reports a missing archive as a StorageError, not as an empty archive', async () => {
    await using archive = await openFolder()
    fs.rmSync(archive.root, { recursive: true })
    await assertStorageError(archive.store.read(newKey()), /is missing\. Check/)
    await assertStorageError(archive.store.stat(newKey()), /is missing\. Check/)
    await assertStorageError(archive.store.put(newKey(), Buffer.from('x')), /is missing\. Check/)
  })
})

suite('S3', () => {
  test('recognizes a cold object, requests it once, and reads it when it is restored', async () => {
    await using archive = await openS3()
    const { s3, store } = archive
    const key = newKey()
    const bytes = patterned(50_000, 5)
    await store.put(key, bytes)
    s3.freeze(`${PREFIX}/${key}`, 'GLACIER')
    assert.deepEqual(await store.stat(key), { bytes: bytes.length, readiness: 'cold' })
    const failure = await assertStorageError(store.read(key), /cold/)
    assert.equal(failure.isCold, true)

    await Promise.all([store.restore(key), store.restore(key)])
    await store.restore(key)
    const [restoreRequest] = s3.requests.filter(({ query }) => query.startsWith('restore'))
    assert.match(String(restoreRequest?.body), /<Days>7<\/Days>.*<Tier>Standard<\/Tier>/)
    assert.equal((await store.stat(key))?.readiness, 'restoring')
    assert.equal((await assertStorageError(store.read(key), /cold/)).isCold, true)

    s3.finishRestore(`${PREFIX}/${key}`)
    assert.equal((await store.stat(key))?.readiness, 'ready')
    assert.deepEqual(await store.read(key), bytes)
    await assertStorageError(store.restore(newKey(2)), /no .* to restore/)
  })

  test('only classes that cannot be read immediately are cold', async () => {
    await using archive = await openS3()
    const { s3, store } = archive
    const key = newKey()
    await store.put(key, Buffer.from('x'))
    const readiness = async (storageClass: string, archiveStatus: string | null = null) => {
      s3.freeze(`${PREFIX}/${key}`, storageClass, archiveStatus)
      return (await store.stat(key))?.readiness
    }
    for (const storageClass of ['STANDARD_IA', 'ONEZONE_IA', 'GLACIER_IR', 'INTELLIGENT_TIERING']) {
      assert.equal(await readiness(storageClass), 'ready', storageClass)
      assert.deepEqual(await store.read(key), Buffer.from('x'))
    }
    assert.equal(await readiness('GLACIER'), 'cold')
    assert.equal(await readiness('DEEP_ARCHIVE'), 'cold')
    assert.equal(await readiness('INTELLIGENT_TIERING', 'ARCHIVE_ACCESS'), 'cold')
    await store.restore(key)
    assert.equal((await store.stat(key))?.readiness, 'restoring')
    const restoreRequest = s3.requests.find(({ query }) => query.startsWith('restore'))
    assert.doesNotMatch(String(restoreRequest?.body), /Days/)
  })

  test('retries a server that rejects temporarily', async () => {
    await using archive = await openS3({})
    const { s3, store } = archive
    const key = newKey()
    for (const fault of ['refused', 'hungUp'] as const) {
      s3.next[fault] = 1
      await store.put(key, LARGE)
      s3.next[fault] = 1
      assert((await store.read(key))?.equals(LARGE))
      s3.next[fault] = 1
      assert.equal((await store.stat(key))?.bytes, LARGE.length)
      assert.equal(s3.next[fault], 0)
    }
  })

  test('a server that rejects, hangs or is gone is a StorageError within the timeout', async () => {
    await using archive = await openS3()
    const { s3, store } = archive
    const key = newKey()
    await store.put(key, Buffer.from('x'))
    const assertAllFail = async (sentence: RegExp): Promise<void> => {
      const calls = [store.put(key, LARGE), store.read(key), store.stat(key), store.delete(key)]
      const failing = calls.map(async (call) => await assertStorageError(call, sentence))
      await within(12_000, Promise.all(failing))
    }
    s3.mode = 'refuse'
    await assertAllFail(/is temporarily unavailable \(503 /)
    s3.mode = 'hang'
    await assertAllFail(/did not respond in time/)
    s3.mode = 'pass'
    assert.deepEqual(await store.read(key), Buffer.from('x'))
    await s3.vanish()
    await assertAllFail(/can't be reached \(ECONNREFUSED\)/)
  })

  test('retries a body that breaks off, stalls or is corrupt, and never returns it', async () => {
    await using archive = await openS3()
    const { s3, store } = archive
    const key = newKey()
    const bytes = patterned(3_000_000, 9)
    await store.put(key, bytes)
    for (const fault of ['brokenOff', 'stalled', 'corrupted'] as const) {
      s3.next[fault] = 1
      assert((await store.read(key))?.equals(bytes), fault)
      assert.equal(s3.next[fault], 0)
      s3.next[fault] = 99
      const sentence = fault === 'corrupted' ? /\.parquet of .* is damaged: / : /can't be|in time/
      await assertStorageError(store.read(key), sentence)
      s3.next[fault] = 0
    }
  })

  test('rejects an upload that is corrupted in transit, and removes its parts', async () => {
    await using archive = await openS3({})
    const { s3, store } = archive
    const key = newKey()
    await store.put(key, Buffer.from('old'))
    for (const bytes of [patterned(1_000, 1), LARGE]) {
      s3.next.corrupted = 1
      await assertStorageError(store.put(key, Buffer.from(bytes)), /400 BadDigest/)
      assert.deepEqual(await store.read(key), Buffer.from('old'))
    }
    assert(s3.requests.some(({ method, query }) => method === 'DELETE' && /uploadId=/.test(query)))
  })

  test('an abandoned upload does not continue in the background', async () => {
    await using archive = await openS3({ ...QUICK, requestMsMax: 60_000, totalMsMax: 300 })
    const { s3, store } = archive
    s3.mode = 'hang'
    for (const bytes of [Buffer.from('x'), LARGE]) {
      await assertStorageError(store.put(newKey(), bytes), /in time/)
      await eventually(() => assert.equal(s3.hanging, 0))
    }
  })

  test('reports a missing bucket as a StorageError, not as an empty archive', async () => {
    await using archive = await openS3()
    const options = { s3Endpoint: archive.s3.endpoint, s3Region: 'eu-central-1', s3Limits: QUICK }
    await using store = await openObjectStore('s3://elsewhere/annals', options)
    for (const call of ['read', 'stat', 'delete', 'restore'] as const) {
      await assertStorageError(store[call](newKey()), /bucket .* does not exist/)
    }
    await assertStorageError(store.put(newKey(), Buffer.from('x')), /bucket .* does not exist/)
  })

  test('reports rejected or missing credentials without repeating them', async (t) => {
    await using archive = await openS3()
    const options = { s3Endpoint: archive.s3.endpoint, s3Region: 'eu-central-1', s3Limits: QUICK }
    t.after(() => setS3Environment(metadata))
    process.env.AWS_ACCESS_KEY_ID = 'AKIAUNKNOWN'
    await using denied = await openObjectStore('s3://archive', options)
    const refused = await assertStorageError(denied.read(newKey()), /denied access \(InvalidAcc/)
    assert.doesNotMatch(inspect(refused, { depth: null, showHidden: true }), /AKIAUNKNOWN/)

    delete process.env.AWS_ACCESS_KEY_ID
    process.env.AWS_EC2_METADATA_DISABLED = 'true'
    await using anonymous = await openObjectStore('s3://archive', options)
    await assertStorageError(anonymous.read(newKey()), /no credentials/)
    // If it does find a region, its requests stay on this machine.
    process.env.AWS_ENDPOINT_URL_S3 = archive.s3.endpoint
    await using nowhere = await openObjectStore('s3://archive', NO_S3)
    await assertStorageError(nowhere.read(newKey()), /no region/)
  })

  test('with credentials in the environment, contacts only the endpoint', () => {
    // None of the stores above has a region, except where a test sets one.
    assert.deepEqual([...connected], ['127.0.0.1'])
    assert.equal(metadata.lookups, 0)
  })
})

type TestArchive = AsyncDisposable & { store: ObjectStore; openAgain: () => Promise<ObjectStore> }

async function openArchive(kind: 'folder' | 'S3'): Promise<TestArchive> {
  return kind === 'folder' ? await openFolder() : await openS3({})
}

async function openFolder() {
  const folder = fs.mkdtempSync(join(tmpdir(), 'annals-test-'))
  // Neither the archive nor its parent folder exists, and the URL has a trailing slash.
  const root = join(folder, 'data/archive')
  const url = `${pathToFileURL(root).href}/`
  const openAgain = async () => await openObjectStore(url, NO_S3)
  const store = await openAgain()
  await store.put(newKey(), Buffer.from('the first write creates the folder'))
  const drafts = () => fs.readdirSync(join(root, '.drafts')).filter((name) => name !== 'lock')
  const [ownDrafts = ''] = drafts()
  return {
    root,
    url,
    store,
    openAgain,
    drafts,
    ownDrafts,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      if (fs.existsSync(root)) assert(!drafts().includes(ownDrafts), 'a closed store leaves none')
      fs.rmSync(folder, { recursive: true })
    },
  }
}

async function openS3(s3Limits: Partial<S3Limits> = QUICK) {
  const s3 = await S3Server.listen()
  const openAgain = async () =>
    await openObjectStore(`s3://${s3.bucket}/${PREFIX}/`, {
      s3Endpoint: s3.endpoint,
      s3Region: null,
      s3Limits,
    })
  const store = await openAgain()
  return {
    s3,
    store,
    openAgain,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await s3[Symbol.asyncDispose]()
    },
  }
}

function newKey(seq = 1, month = 1): string {
  return `${newId()}/2026-${String(month).padStart(2, '0')}/${String(seq).padStart(16, '0')}-0123456789abcdef.parquet`
}

/** Random bytes, different for each seed. */
function patterned(bytes: number, seed: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  for (let at = 0; at + 4 <= bytes; at += 4) buffer.writeUInt32LE(at * 8 + seed, at)
  return buffer
}

/** Runs without write permission for the folder. Root has every permission, so it switches users. */
async function asOtherUser(root: string, run: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0
  const folders = ['.', ...fs.readdirSync(root, { recursive: true, encoding: 'utf8' })]
  const chmod = (folder: number, file: number) => {
    for (const path of [
      join(root, '../..'),
      join(root, '..'),
      ...folders.map((f) => join(root, f)),
    ])
      fs.chmodSync(path, fs.statSync(path).isDirectory() ? folder : file)
  }
  chmod(0o555, 0o444)
  if (isRoot) process.seteuid?.(65_534)
  try {
    await run()
  } finally {
    if (isRoot) process.seteuid?.(0)
    chmod(0o700, 0o600)
  }
}

async function assertStorageError(
  call: Promise<unknown>,
  sentence = /^[A-Za-z].*\.$/,
): Promise<StorageError> {
  const failure = await call.then(
    () => assert.fail('it worked'),
    (error: unknown) => error,
  )
  assert(failure instanceof StorageError, inspect(failure))
  assert.match(failure.message, sentence)
  const everything = inspect(failure, { depth: null, showHidden: true })
  assert.doesNotMatch(everything, /S3RVER|AWS4-HMAC|Signature=|Credential=/)
  return failure
}
