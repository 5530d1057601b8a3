import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { LostCheck } from '../../src/outlet/proof/lost-check.ts'
import { stateKeyOf } from '../../src/outlet/proof/signer-state.ts'
import { newId, type WorkspaceId } from '../../src/platform/id.ts'
import { REPLACED_BYTES_MAX, StorageError } from '../../src/platform/object-store/object-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import {
  createCompanyIn,
  SECRET_KEY,
  startTestApp,
  type TestApp,
} from '../harness/app/start-app.ts'
import { openBucket } from '../harness/archive/bucket.ts'
import { failure, s3Environment } from '../harness/archive/s3-server.ts'
import { query } from '../harness/database/engine.ts'
import { cloneDatabase, type TestDatabase } from '../harness/database/template-db.ts'
import { createSigner, sendEvents, signWhole } from '../harness/proof/proof.ts'
import { eventually } from '../harness/timing/eventually.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const kept = stack.move()
after(() => kept.disposeAsync())

type Restored = AsyncDisposable & {
  annals: TestApp
  /** The restored database, which is older than the workspace. */
  old: TestDatabase
  env: Record<string, string>
  id: WorkspaceId
  key: string
  run: (database: TestDatabase, ...args: string[]) => ReturnType<typeof runCommandInHost>
}

/** A service that signed five events of a workspace, and a backup of its database from before that. */
async function createRestored(kind: 'folder' | 'S3'): Promise<Restored> {
  await using opened = new AsyncDisposableStack()
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'annals-lost-')))
  const ANNALS_ARCHIVE_URL =
    kind === 'folder' ? pathToFileURL(folder.path).href : `s3://${s3.bucket}/lost-${newId()}`
  const env = { ...s3Environment(s3), ANNALS_ARCHIVE_URL, ANNALS_RATE_LIMITS: 'off' }
  const old = opened.use(await cloneDatabase())
  await createCompanyIn(old)
  // An API node doesn't sign on its own.
  const annals = opened.use(await startTestApp({ role: 'api', env }))
  const { workspace, workspaceKey: key } = await annals.createCompany()
  await sendEvents(annals, key, 5)
  await signWhole(createSigner(annals), workspace.id)
  const run = async (database: TestDatabase, ...args: string[]) =>
    await runCommandInHost(args, {
      ...s3Environment(s3),
      ANNALS_ARCHIVE_URL,
      ANNALS_DATABASE_URL: database.url,
      ANNALS_SECRET_KEY: SECRET_KEY,
    })
  const moved = opened.move()
  const dispose = () => moved.disposeAsync()
  return { annals, old, env, id: workspace.id, key, run, [Symbol.asyncDispose]: dispose }
}

function recordingLogger() {
  const lines: Record<string, unknown>[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const events = () => lines.map(({ event }) => event)
  return { logger, lines, events }
}

const lostLine = (id: string, signed: string) =>
  `LOST workspace ${id}: ${signed}, but the workspace is missing from the database\n`

for (const kind of ['folder', 'S3'] as const) {
  suite(`a workspace that was lost, with an archive in ${kind}`, () => {
    test('annals verify names it and exits with 1, until the operator accepts the loss', async () => {
      await using restored = await createRestored(kind)
      const { annals, old, id, key, run } = restored
      const good = await run(annals.database, 'verify')
      assert.equal(good.code, 0, good.stdout)
      assert.match(good.stdout, /^ok: 5 events in 2 workspaces, every chain is intact\n/)
      const bad = await run(old, 'verify')
      assert.equal(bad.code, 1, bad.stdout)
      assert.equal(
        bad.stdout,
        `${lostLine(id, '5 events were signed')}FAILED: signed workspaces that are lost: 1\n`,
      )

      const { archive } = annals.app
      const state = await archive.readTagged(stateKeyOf(id))
      const report = await run(old, 'ledger-fork', '--workspace', id)
      assert.equal(report.code, 1)
      assert.match(report.stdout, /is lost: 5 events were signed.*\nSigned: 5 events at 20/)
      assert.match(report.stdout, new RegExp(`ledger-fork --workspace ${id} --accept-lost\n$`))
      assert.deepEqual(await archive.readTagged(`${stateKeyOf(id)}.lost`), null)
      const accepted = await run(old, 'ledger-fork', '--workspace', id, '--accept-lost')
      assert.equal(accepted.code, 0, accepted.stderr)
      const [, copy = ''] = / and (\S+)\. Tell the auditors\.\n$/.exec(accepted.stdout) ?? []
      assert.deepEqual((await archive.readTagged(copy))?.bytes, state?.bytes)
      assert.deepEqual(await archive.readTagged(stateKeyOf(id)), state)
      const quiet = await run(old, 'verify')
      assert.equal(quiet.code, 0, quiet.stdout)
      assert.match(
        quiet.stdout,
        /^note: lost workspaces that were accepted: 1\nok: \d+ events in 2/,
      )

      // A newer backup has the workspace, and the signer continues. What it signs now was never accepted.
      await sendEvents(annals, key, 1)
      assert.equal(await signWhole(createSigner(annals), id), 'done')
      const again = await run(old, 'verify')
      assert.equal(again.code, 1)
      assert(again.stdout.startsWith(lostLine(id, '6 events were signed')), again.stdout)
    })

    test('the signer of a service logs and counts it', async () => {
      await using restored = await createRestored(kind)
      const { old, id } = restored
      const { logger, lines } = recordingLogger()
      const env = {
        ...restored.env,
        ANNALS_METRICS_PORT: '0',
        ANNALS_CHECKPOINT_SECONDS: '1',
      }
      await using service = await startTestApp({ databaseUrl: old.url, env, logger })
      await eventually(async () => {
        const text = await (await fetch(`${service.app.metricsUrl}/metrics`)).text()
        assert.match(text, /^annals_workspace_lost_count 1$/m)
      })
      const lost = lines.filter(({ event }) => event === 'signer.workspace-lost')
      assert.deepEqual(
        lost.map(({ workspaceId, problem }) => [workspaceId, problem]),
        [[id, '5 events were signed, but the workspace is missing from the database']],
      )
    })
  })
}

test('finds a workspace whose rows were deleted, and one whose signed state is damaged', async () => {
  await using restored = await createRestored('folder')
  const { annals, id, run } = restored
  await annals.app.archive.put(stateKeyOf(id), Buffer.from('{}'))
  await query(
    annals.database.connection,
    `set session_replication_role = replica;
     delete from event where workspace_id = '${id}';
     delete from chain_head where workspace_id = '${id}';
     delete from checkpoint where workspace_id = '${id}';
     delete from workspace where id = '${id}'`,
  )
  const { code, stdout } = await run(annals.database, 'verify')
  assert.equal(code, 1)
  assert(stdout.startsWith(lostLine(id, 'an unknown number of events were signed')), stdout)
})

test('finds a lost workspace whose signed state is too large to be read', async () => {
  await using restored = await createRestored('folder')
  const { annals, old, id, run } = restored
  await annals.app.archive.put(stateKeyOf(id), Buffer.alloc(REPLACED_BYTES_MAX + 1))
  const { code, stdout } = await run(old, 'verify')
  assert.equal(code, 1)
  assert(stdout.startsWith(lostLine(id, 'an unknown number of events were signed')), stdout)
  const accepted = await run(old, 'ledger-fork', '--workspace', id, '--accept-lost')
  assert.equal(accepted.code, 1)
  assert.match(accepted.stderr, new RegExp(`The object ${stateKeyOf(id)} .* Move it out`))
})

test('accepts only the loss of a workspace that is lost', async () => {
  await using restored = await createRestored('folder')
  const { annals, old, id, run } = restored
  const here = await run(annals.database, 'ledger-fork', '--workspace', id, '--accept-lost')
  assert.deepEqual([here.code, here.stdout], [1, ''])
  assert.match(here.stderr, /Nothing was changed: the database has workspace/)
  const never = await run(old, 'ledger-fork', '--workspace', newId(), '--accept-lost')
  assert.deepEqual([never.code, never.stdout], [1, ''])
  assert.match(never.stderr, /There is no workspace with the id/)
  const sized = await run(old, 'ledger-fork', '--workspace', id, '--accept-size', '5')
  assert.equal(sized.code, 1)
  assert.match(sized.stderr, /there are no events to accept/)
  assert.equal((await run(old, 'verify')).code, 1)
})

test('says that it can’t detect a loss if the bucket denies listing, and still verifies', async () => {
  await using restored = await createRestored('S3')
  const { old, run, annals } = restored
  s3.intercept = ({ query: text }) =>
    text.includes('list-type=2') ? failure(403, 'AccessDenied') : null
  try {
    const { code, stdout } = await run(old, 'verify')
    assert.equal(code, 0, stdout)
    assert.match(
      stdout,
      /^note: the signed workspaces can't be listed, so lost ones aren't detected/,
    )
    assert.match(stdout, /ok: 0 events in 2 workspaces, every chain is intact\n/)
    const { logger, lines, events } = recordingLogger()
    const onLostCount = () => assert.fail('nothing was counted')
    const { archive, database } = annals.app
    let nowMs = 0
    const monotonic = () => nowMs
    const check = new LostCheck({ db: database.db, archive, logger, monotonic, onLostCount })
    for (; nowMs < 72 * 3_600_000; nowMs += 3_600_000) await check.run(new AbortController().signal)
    assert.deepEqual(events(), ['signer.list-failed'])
    assert.match(String(lines[0]?.['problem']), /denied access \(AccessDenied\)/)
  } finally {
    s3.intercept = () => null
  }
})

test('annals verify exits with 1 if the list of signed workspaces can’t be read', async () => {
  await using restored = await createRestored('S3')
  const { annals, run } = restored
  s3.intercept = ({ query: text }) =>
    text.includes('list-type=2') ? failure(501, 'NotImplemented') : null
  try {
    const { code, stdout } = await run(annals.database, 'verify')
    assert.equal(code, 1)
    assert.match(stdout, /^UNREADABLE list of signed workspaces: .*501 NotImplemented/)
    assert.match(stdout, /FAILED: the signed workspaces could not be listed\n$/)
  } finally {
    s3.intercept = () => null
  }
})

test('the signer checks at its start, then daily, and hourly while a workspace is lost', async () => {
  await using restored = await createRestored('folder')
  const { annals, old, id, run } = restored
  await using service = await startTestApp({
    role: 'api',
    databaseUrl: old.url,
    env: restored.env,
  })
  const HOUR_MS = 3_600_000
  const { logger, events } = recordingLogger()
  let nowMs = 0
  let lists = 0
  let isDown = false
  const archive: typeof annals.app.archive = {
    ...annals.app.archive,
    list: async (prefix, page, signal) => {
      lists += 1
      if (isDown) throw new StorageError('It is down.')
      return await annals.app.archive.list(prefix, page, signal)
    },
  }
  // More than one page.
  const state = await archive.readTagged(stateKeyOf(id))
  assert(state)
  for (let nth = 0; nth < 50; nth += 1) await archive.put(stateKeyOf(newId()), state.bytes)
  const counts: number[] = []
  const check = new LostCheck({
    db: service.app.database.db,
    archive,
    logger,
    monotonic: () => nowMs,
    onLostCount: (count) => void counts.push(count),
  })
  const runAt = async (ms: number, expectedLists: number) => {
    nowMs = ms
    lists = 0
    for (let nth = 0; nth < 4; nth += 1) await check.run(new AbortController().signal)
    assert.equal(lists, expectedLists)
  }
  await runAt(0, 2)
  assert.deepEqual(counts, [51])
  assert.equal(events().length, 51)
  await runAt(HOUR_MS - 1, 0)
  isDown = true
  await runAt(HOUR_MS, 1)
  await runAt(HOUR_MS + 60_000, 1)
  assert.deepEqual(events().slice(51), ['signer.list-failed'])
  isDown = false
  const { keys } = await archive.list('signer/', { cursor: null, limit: 1_000 })
  for (const key of keys) {
    const other = /^signer\/([0-9a-f-]{36})$/.exec(key)?.[1] ?? id
    if (other !== id) await archive.delete(key)
  }
  await run(old, 'ledger-fork', '--workspace', id, '--accept-lost')
  await runAt(2 * HOUR_MS, 1)
  assert.deepEqual(counts, [51, 0])
  await runAt(25 * HOUR_MS, 0)
  await runAt(26 * HOUR_MS, 1)
  assert.equal(events().length, 52)
})
