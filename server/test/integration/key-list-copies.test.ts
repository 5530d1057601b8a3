import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, suite, test } from 'node:test'
import {
  listSigningKeys,
  listUnannounced,
  loadSigningKeys,
  markAnnounced,
  rotateDerivedKey,
} from '../../src/outlet/proof/key-list/key-list.ts'
import {
  acceptKeyList,
  inspectKeyList,
  type KeyListDeps,
} from '../../src/outlet/proof/key-list/key-list-copies.ts'
import { deriveSeed, signingKeyOf, publicKeyText } from '../../src/outlet/proof/signing-key.ts'
import { newId } from '../../src/platform/id.ts'
import {
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from '../../src/platform/object-store/object-store.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { openBucket } from '../harness/archive/bucket.ts'
import { query } from '../harness/database/engine.ts'
import { type KeyStores, openKeyStores } from '../harness/proof/key-stores.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const kept = stack.move()
after(() => kept.disposeAsync())

const KEY_LIST = 'signer/keys'
const keySource = { secretKey: new Secret(randomBytes(32)), configured: null, previous: null }
const otherSource = { ...keySource, secretKey: new Secret(randomBytes(32)) }
const attacker = publicKeyText(signingKeyOf(new Secret(randomBytes(32))))
const [first, second] = [0, 1].map((nth) =>
  publicKeyText(signingKeyOf(deriveSeed(keySource.secretKey, nth))),
)
const clock = () => Date.parse('2026-01-01T00:00:00Z')

type Stored = Record<string, unknown> & { keys: Record<string, unknown>[] }
const parse = (text: string): Stored => JSON.parse(text)

async function readObject({ archive }: KeyStores): Promise<string> {
  return (await archive.readTagged(KEY_LIST))?.bytes.toString() ?? ''
}

async function readRow({ database }: KeyStores): Promise<string> {
  const [row] = await query(database.connection, 'select list from signing_key_list')
  return typeof row?.['list'] === 'string' ? row['list'] : ''
}

/** As someone with the password of the database's owner. Null deletes the row. */
async function writeRow({ database }: KeyStores, text: string | null): Promise<void> {
  await query(database.connection, 'delete from signing_key_list')
  if (text === null) return
  const literal = `'${text.replaceAll("'", "''")}'`
  await query(database.connection, `insert into signing_key_list (list) values (${literal})`)
}

type Rotated = AsyncDisposable & {
  stores: KeyStores
  deps: KeyListDeps
  /** The list before the rotation. */
  older: string
  newest: string
}

/** A list whose first key was replaced. */
async function createRotated(kind: 'folder' | 'S3'): Promise<Rotated> {
  const stores = await openKeyStores(kind === 'S3' ? s3 : null)
  const deps = { ...stores, keySource }
  await loadSigningKeys(deps, clock)
  const older = await readObject(stores)
  await rotateDerivedKey(deps, clock)
  await markAnnounced(deps, second ?? '')
  const newest = await readObject(stores)
  assert.equal(await readRow(stores), newest)
  return { stores, deps, older, newest, [Symbol.asyncDispose]: () => stores[Symbol.asyncDispose]() }
}

async function signers(deps: KeyListDeps): Promise<string[]> {
  return (await loadSigningKeys(deps, clock)).map(publicKeyText)
}

const problemsIn = ({ lines }: KeyStores) =>
  lines
    .filter(({ event, level }) => event === 'signer.keys-refused' && level === 50)
    .map(({ problem }) => problem)

/** A list that the secret key of another installation authenticates. */
async function listOfOther(): Promise<string> {
  await using stores = await openKeyStores()
  const deps = { ...stores, keySource: otherSource }
  await loadSigningKeys(deps, clock)
  for (let nth = 0; nth < 3; nth += 1) await rotateDerivedKey(deps, clock)
  return await readObject(stores)
}

/** What someone can do to one copy, and what Annals says about it. */
const CHANGES: [
  name: string,
  change: (lists: Rotated) => string | null | Promise<string>,
  problem: RegExp,
][] = [
  ['was deleted', () => null, /is missing$/],
  ['was rolled back', ({ older }) => older, /is older than the newest list$/],
  [
    'has an added key',
    ({ newest }) => {
      const list = parse(newest)
      const key = {
        publicKey: attacker,
        from: '2026-01-01T00:00:00.000Z',
        to: '2027-11-01T00:00:00.000Z',
        announced: true,
      }
      return JSON.stringify({ ...list, number: 100, keys: [key, ...list.keys] })
    },
    /was not written with this secret key$/,
  ],
  [
    'lost a key',
    ({ newest }) => JSON.stringify({ ...parse(newest), keys: parse(newest).keys.slice(1) }),
    /was not written with this secret key$/,
  ],
  [
    'has another time',
    ({ newest }) => newest.replace('"from": "2026-', '"from": "2025-'),
    /was not written with this secret key$/,
  ],
  [
    'has a higher number',
    ({ older }) => JSON.stringify({ ...parse(older), number: 100 }),
    /was not written with this secret key$/,
  ],
  [
    'has no code',
    ({ newest }) => {
      const { version, generation, keys } = parse(newest)
      return JSON.stringify({ version, generation, keys: keys.slice(1) })
    },
    /has no authentication code$/,
  ],
  [
    'has only a number',
    ({ newest }) => JSON.stringify({ ...parse(newest), mac: undefined }),
    /is damaged$/,
  ],
  ['is from another installation', listOfOther, /was not written with this secret key$/],
]

for (const kind of ['folder', 'S3'] as const) {
  suite(`the list of signing keys (${kind} archive)`, () => {
    for (const [name, change, problem] of CHANGES) {
      test(`an object that ${name} is reported, not used, and replaced with the copy`, async () => {
        await using rotated = await createRotated(kind)
        const { stores, deps, newest } = rotated
        const changed = await change(rotated)
        if (changed === null) await stores.archive.delete(KEY_LIST)
        else await stores.archive.put(KEY_LIST, Buffer.from(changed))

        const found = await inspectKeyList(deps)
        assert.match(found.problem ?? '', problem)
        assert.deepEqual(
          found.list.keys.map(({ publicKey }) => publicKey),
          [first, second],
        )
        assert.equal(await readObject(stores), changed ?? '', 'inspecting changes nothing')

        assert.deepEqual(await signers(deps), [second, first])
        const listed = await listSigningKeys(deps)
        assert.deepEqual(
          listed.map(({ publicKey }) => publicKey),
          [first, second],
        )
        assert.equal(await readObject(stores), newest)
        assert.equal(await readRow(stores), newest)
        const problems = problemsIn(stores)
        assert.equal(problems.length, 1)
        assert.match(String(problems[0]), problem)
        assert.equal((await inspectKeyList(deps)).problem, null)
      })

      test(`a copy in the database that ${name} is not used, and is replaced`, async () => {
        await using rotated = await createRotated(kind)
        const { stores, deps, newest } = rotated
        await writeRow(stores, await change(rotated))
        assert.deepEqual(await signers(deps), [second, first])
        assert.equal(await readObject(stores), newest)
        assert.equal(await readRow(stores), newest)
        const problems = problemsIn(stores)
        assert.equal(problems.length, 1)
        assert.match(String(problems[0]), /^the copy of signer\/keys in the database /)
        assert.match(String(problems[0]), problem)
      })
    }

    test('an object that is too large is replaced with the copy', async () => {
      await using rotated = await createRotated(kind)
      const { stores, deps, newest } = rotated
      const padding = ' '.repeat(REPLACED_BYTES_MAX)
      await stores.archive.put(KEY_LIST, Buffer.from(newest + padding))
      assert.match((await inspectKeyList(deps)).problem ?? '', /is damaged$/)
      assert.deepEqual(await signers(deps), [second, first])
      assert.equal(await readObject(stores), newest)
    })

    test('a rotation continues from the copy, and two at the same time replace the key once', async () => {
      await using rotated = await createRotated(kind)
      const { stores, deps, older } = rotated
      await stores.archive.put(KEY_LIST, Buffer.from(older))
      const arrived = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
      // Each process has read the list before either writes it.
      const meeting = (own: 0 | 1): ObjectStore => ({
        ...stores.archive,
        replace: async (key, write) => {
          arrived[own].resolve()
          await Promise.all(arrived.map(({ promise }) => promise))
          return await stores.archive.replace(key, write)
        },
      })
      await signers(deps)
      await Promise.all(
        ([0, 1] as const).map((own) =>
          rotateDerivedKey({ ...deps, archive: meeting(own) }, () => clock() + own),
        ),
      )
      const keys = (await listSigningKeys(deps)).map(({ publicKey }) => publicKey)
      assert.deepEqual(keys.slice(0, 2), [first, second])
      assert.equal(keys.length, 3)
      assert.equal(await readRow(stores), await readObject(stores))
      assert.equal(problemsIn(stores).length, 1, 'a change by another process is no problem')
    })

    test('a list from another installation is refused if the database has none', async () => {
      await using stores = await openKeyStores(kind === 'S3' ? s3 : null)
      const foreign = await listOfOther()
      await stores.archive.put(KEY_LIST, Buffer.from(foreign))
      const deps = { ...stores, keySource }
      const refusal = {
        name: 'StorageError',
        message:
          'The list of signing keys can\'t be used, so nothing is signed: signer/keys in the archive was not written with this secret key, and its copy in the database is missing. Restore signer/keys from a backup. If you changed the secret key, run "annals secret-key accept" again.',
      }
      await assert.rejects(signers(deps), refusal)
      await assert.rejects(listSigningKeys(deps), refusal)
      await assert.rejects(inspectKeyList(deps), refusal)
      assert.deepEqual([await readObject(stores), await readRow(stores)], [foreign, ''])
    })

    test('a change that loses a race is repeated on the newest list', async () => {
      await using rotated = await createRotated(kind)
      const { stores, deps, newest } = rotated
      // Someone rolls the object back while a process changes the list, and another process changes the old list.
      let isBack = false
      const archive: ObjectStore = {
        ...stores.archive,
        replace: async (key, write) => {
          const tag = await stores.archive.replace(key, write)
          if (isBack) return tag
          isBack = true
          await stores.archive.put(KEY_LIST, Buffer.from(newest))
          await loadSigningKeys(
            { ...deps, keySource: { ...keySource, configured: new Secret(Buffer.alloc(32, 1)) } },
            clock,
          )
          return tag
        },
      }
      await rotateDerivedKey({ ...deps, archive }, clock)
      assert.equal(await readRow(stores), await readObject(stores))
      const configured = publicKeyText(signingKeyOf(new Secret(Buffer.alloc(32, 1))))
      const third = publicKeyText(signingKeyOf(deriveSeed(keySource.secretKey, 2)))
      assert.deepEqual(
        (await listSigningKeys(deps)).map(({ publicKey }) => publicKey),
        [first, second, configured, third],
      )
    })
  })
}

/** The list as written by a version without codes. */
function withoutCode(text: string): string {
  const { version, generation, keys } = parse(text)
  return JSON.stringify({ version, generation, keys })
}

test('a list without a code is adopted once, while the database has no copy', async () => {
  await using rotated = await createRotated('folder')
  const { stores, deps, newest } = rotated
  await stores.archive.put(KEY_LIST, Buffer.from(withoutCode(newest)))
  await writeRow(stores, null)
  assert.equal((await inspectKeyList(deps)).problem, null)
  assert.deepEqual(await signers(deps), [second, first])
  assert.equal(await readRow(stores), await readObject(stores))
  assert.deepEqual(parse(await readObject(stores)).keys, parse(newest).keys)
  assert.equal(parse(await readObject(stores))['number'], 1)
  const adopted = stores.lines.filter(({ event }) => event === 'signer.keys-adopted')
  assert.deepEqual(
    adopted.map(({ publicKeys }) => publicKeys),
    [[first, second]],
  )
  assert.equal(problemsIn(stores).length, 0)
})

test('a list without a code is refused if this node does not have all of its keys', async () => {
  await using rotated = await createRotated('folder')
  const { stores, deps, newest } = rotated
  const { keys, ...list } = parse(withoutCode(newest))
  const added = {
    publicKey: attacker,
    from: '2026-01-01T00:00:00.000Z',
    to: '2027-11-01T00:00:00.000Z',
    announced: true,
  }
  for (const forged of [
    { ...list, keys: [added, ...keys] },
    { ...list, generation: 1e12, keys },
  ]) {
    await stores.archive.put(KEY_LIST, Buffer.from(JSON.stringify(forged)))
    await writeRow(stores, null)
    await assert.rejects(signers(deps), /^StorageError: signer\/keys .* has no authentication code/)
    await assert.rejects(listSigningKeys(deps), /To accept them, run "annals secret-key accept"\.$/)
    assert.equal(await readRow(stores), '')
  }
})

test('if both copies are lost after something was signed, the key is announced again', async () => {
  await using rotated = await createRotated('folder')
  const { stores, deps } = rotated
  assert.deepEqual(await listUnannounced(deps), [])
  const lose = async () => {
    await stores.archive.delete(KEY_LIST)
    await writeRow(stores, null)
    await signers(deps)
    return (await listUnannounced(deps)).map(({ publicKey, previous }) => [publicKey, previous])
  }
  assert.deepEqual(await lose(), [], 'nothing was signed yet')
  const state = `signer/${newId()}`
  await stores.archive.replace(state, { bytes: Buffer.from('{}'), tag: null })
  assert.deepEqual(await lose(), [[first, null]], 'the archive has a signed state')
  await stores.archive.delete(state)
  await query(
    stores.database.connection,
    `insert into checkpoint (workspace_id, tree_size) values ('${newId()}', 0)`,
  )
  assert.deepEqual(await lose(), [[first, null]], 'the database has a checkpoint')
  await markAnnounced(deps, first ?? '')
  assert.deepEqual(await listUnannounced(deps), [])
})

test('the operator accepts the list with a new secret key, but only if both copies are equal', async () => {
  await using rotated = await createRotated('folder')
  const { stores, deps, older, newest } = rotated
  assert.equal(await acceptKeyList(deps), null, 'the key is the same')
  const changed = { ...deps, keySource: otherSource }
  await stores.archive.put(KEY_LIST, Buffer.from(older))
  await assert.rejects(acceptKeyList(changed), /^OperatorError: .* are not the same\. Restore/)
  const forged = parse(newest)
  forged.keys.push({ ...forged.keys[0], publicKey: 'EVILKEY=\r\u001B[2K' })
  await stores.archive.put(KEY_LIST, Buffer.from(JSON.stringify(forged)))
  await assert.rejects(acceptKeyList(changed), /^OperatorError: .* is damaged\. Restore/)
  await stores.archive.put(KEY_LIST, Buffer.from(newest))
  await assert.rejects(signers(changed), /run "annals secret-key accept" again\.$/)
  const accepted = await acceptKeyList(changed)
  assert.deepEqual(
    accepted?.keys.map(({ publicKey }) => publicKey),
    [first, second],
  )
  const own = publicKeyText(signingKeyOf(deriveSeed(otherSource.secretKey, 1)))
  assert.deepEqual(await signers(changed), [own])
  const listed = await listSigningKeys(changed)
  assert.deepEqual(
    listed.map(({ publicKey }) => publicKey),
    [first, second, own],
  )
})
