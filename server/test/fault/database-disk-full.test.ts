import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { AnnalsProcess, runAnnals } from '../harness/app/annals-process.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { SmallDisk } from '../harness/app/small-disk.ts'
import { call } from '../harness/app/start-app.ts'

const DISK_BYTES = 192 * 1_024 * 1_024

test('on a disk that is almost full, events are refused while everything else works', async (t) => {
  await using disk = await SmallDisk.make(DISK_BYTES)
  if (disk.code !== 'ENOSPC') return t.skip('mounting a file system is not permitted here')
  const env = { ANNALS_DATA_DIR: join(disk.folder, 'data'), ANNALS_PORT: '0' }
  await using annals = new AnnalsProcess(['serve'], env, disk.within)
  const [, url = ''] = await annals.printed(/running at (http:\S+)/)
  const [, key = ''] = await annals.printed(/Workspace key +(\S+)/)
  const body = { category: 'c', action: 'a' }
  const send = () => call(`${url}/v1/events`, 'POST', { key, body })
  const sendBatch = () => call(`${url}/v1/events/batch`, 'POST', { key, body: { events: [body] } })
  const statusOf = async (path: string) => (await call(`${url}${path}`, 'GET', { key })).status
  assert.equal((await send()).status, 201)

  // The database itself could still write.
  await disk.fill(3 * 1_024 * 1_024)
  await eventually(async () => assert.equal(await statusOf('/ready'), 503))
  for (const { status, json } of [await send(), await sendBatch()]) {
    assert.deepEqual([status, json.code], [503, 'unavailable'])
    assert.match(json.error, /The disk is almost full/)
  }
  assert.equal(await statusOf('/v1/events'), 200)
  const created = await runAnnals(['bootstrap', '--company', 'Other'], env, disk.within)
  assert.equal(created.code, 0, created.stderr)

  await disk.growTo(DISK_BYTES * 2)
  await eventually(async () => assert.equal(await statusOf('/ready'), 200))
  assert.equal((await send()).status, 201)
})

test('on a full disk, a node is not ready but queries and commands that only read work', async (t) => {
  await using disk = await SmallDisk.make(DISK_BYTES)
  if (disk.code !== 'ENOSPC') return t.skip('mounting a file system is not permitted here')
  const env = { ANNALS_DATA_DIR: join(disk.folder, 'data'), ANNALS_PORT: '0' }
  await using annals = new AnnalsProcess(['serve'], env, disk.within)
  const [, url = ''] = await annals.printed(/running at (http:\S+)/)
  const [, key = ''] = await annals.printed(/Workspace key +(\S+)/)
  const send = () => call(`${url}/v1/events`, 'POST', { key, body: { category: 'c', action: 'a' } })
  const statusOf = async (path: string) => (await call(`${url}${path}`, 'GET', { key })).status
  assert.equal((await send()).status, 201)

  const filler = join(disk.folder, 'filler')
  const run = (command: string) =>
    spawnSync(disk.within[0] ?? '', [...disk.within.slice(1), 'sh', '-c', command])
  run(`dd if=/dev/zero of=${filler} bs=4k`)
  await eventually(async () => assert.equal(await statusOf('/ready'), 503))
  const refused = await send()
  assert.deepEqual([refused.status, refused.json.code], [503, 'unavailable'])
  assert.equal(await statusOf('/v1/events'), 200)
  for (const command of ['verify', 'migrate']) {
    const { code, stderr } = await runAnnals([command], env, disk.within)
    assert.equal(code, 0, stderr)
  }

  run(`rm ${filler}`)
  await eventually(async () => assert.equal(await statusOf('/ready'), 200))
  assert.equal((await send()).status, 201)
})
