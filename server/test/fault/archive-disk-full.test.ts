import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type Outcome, runAnnals } from '../harness/app/annals-process.ts'
import { query } from '../harness/database/engine.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { SmallDisk } from '../harness/app/small-disk.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const SMALL_EVENTS = 20
const LARGE_EVENTS = 200
const DISK_BYTES = 524_288

/** Incompressible events: 200 of them don't fit on the disk. */
const events = (count: number) =>
  Array.from({ length: count }, (_, nth) => ({
    category: 'disk',
    action: `number ${nth}`,
    metadata: { noise: randomBytes(6_000).toString('base64') },
  }))

test('on a full disk the archiver reports it, removes nothing, and continues when there is space', async () => {
  await using annals = await startTestApp()
  await using disk = await SmallDisk.make(DISK_BYTES)
  const { workspaces } = await annals.createCompany({
    workspaces: ['Small', 'Large', 'Small again'],
  })
  const counts = [SMALL_EVENTS, LARGE_EVENTS, SMALL_EVENTS]
  for (const [nth, { workspaceKey }] of workspaces.entries()) {
    await storeEvents(annals, workspaceKey, events(counts[nth] ?? 0))
  }
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_ARCHIVE_URL: pathToFileURL(disk.folder).href,
  }
  const run = (...args: string[]): Promise<Outcome> => runAnnals(args, env, disk.within)
  const archive = () => run('archive', '--before', new Date(Date.now() + 1_000).toISOString())
  const select = async (statement: string) =>
    (await query(annals.database.connection, statement)).map((row) => Object.values(row).join(' '))
  /** `audited` is the number of entries in the audit log. The command adds one. */
  const assertVerifies = async ({ audited }: { audited: number }) => {
    const { code, stdout, stderr } = await run('verify')
    assert.equal(code, 0, stdout + stderr)
    assert.match(stdout, new RegExp(`^ok: ${240 + audited} events in `))
  }
  const assertNoHalves = async () => {
    // Every file with the name of a segment is a complete segment, and unfinished files are gone.
    const segments = disk.files().filter(({ name }) => name.endsWith('.parquet'))
    const catalog = await select('select object_key, bytes from segment')
    assert.deepEqual(
      segments.map(({ name, bytes }) => `${name} ${bytes}`).toSorted(),
      catalog.toSorted(),
    )
    const expected = /\.parquet$|^\.drafts\/lock$|^annals-archive-[0-9a-f]{32}$/
    const others = disk.files().filter(({ name }) => !expected.test(name))
    assert.deepEqual(others, [])
  }

  const full = await archive()
  assert.equal(full.code, 1, full.stdout + full.stderr)
  assert.match(
    full.stdout,
    /^archived 40 events of 2 workspaces\nFAILED: 1 workspaces could not be/,
  )
  const sentence = { ENOSPC: /is full\. Free some space/, EFBIG: /can't be used \(EFBIG\)/ }
  assert.match(full.stderr, sentence[disk.code])
  assert.match(full.stderr, new RegExp(workspaces[1]?.id ?? 'none'))
  const left = `select workspace_id, count(*) from event where action <> 'ARCHIVE_FAILED' group by 1`
  assert.deepEqual(await select(left), [`${workspaces[1]?.id} ${LARGE_EVENTS}`])
  await assertNoHalves()
  await assertVerifies({ audited: 1 })

  await disk.growTo(16 * DISK_BYTES)
  const roomy = await archive()
  assert.equal(roomy.code, 0, roomy.stdout + roomy.stderr)
  assert.match(roomy.stdout, /^archived 202 events of 2 workspaces\n$/)
  assert.deepEqual(await select('select id from event'), [])
  await assertNoHalves()
  await assertVerifies({ audited: 2 })
})
