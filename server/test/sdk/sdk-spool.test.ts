import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { Annals } from '../../../sdk/src/index.ts'
import { diskSpool } from '../../../sdk/src/node/disk-spool.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'

const service = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => service[Symbol.asyncDispose]())
const CHILD = join(import.meta.dirname, '../harness/event/spool-child.ts')

const temporaryFolder = () => mkdtempDisposable(join(tmpdir(), 'annals-spool-'))
const event = (nth: number) => ({ category: 'spool', action: `a${nth}`, idempotencyKey: `k${nth}` })

async function connect() {
  const { workspaceKey: key } = await service.createCompany()
  const annals = new Annals({ apiKey: key, baseUrl: service.url })
  const offline = new Annals({ apiKey: key, baseUrl: 'http://127.0.0.1:1', retriesMax: 0 })
  const stored = async (): Promise<string[]> =>
    (await walkEvents(service, key)).map(({ action }) => action)
  return { annals, offline, key, stored }
}

function eventFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
}

test('after kill -9, every acknowledged event is stored exactly once', async () => {
  const { annals, key, stored } = await connect()
  await using folder = await temporaryFolder()
  const acknowledged: string[] = []
  for (let round = 0; round < rounds(2, 30); round += 1) {
    const args = [CHILD, service.url, key, folder.path, `r${round}`]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    for await (const line of createInterface({ input: child.stdout })) {
      acknowledged.push(line)
      // In the middle of writing, sending and deleting.
      if (acknowledged.length % 1_000 === 500 + 37 * round) child.kill('SIGKILL')
    }
    assert.deepEqual(await exited, [null, 'SIGKILL'])
  }
  assert(acknowledged.length > 500)
  assert(eventFiles(folder.path).length > 0)
  await using recorder = annals.recorder({ spool: diskSpool({ folder: folder.path }) })
  await recorder.flush()
  const actions = await stored()
  assert.equal(new Set(actions).size, actions.length, 'an event was stored twice')
  assert.deepEqual([...new Set(acknowledged).difference(new Set(actions))], [])
})

test('events of an outage stay on disk, in order, and the next recorder sends them', async () => {
  const { annals, offline, key } = await connect()
  await using folder = await temporaryFolder()
  const spool = diskSpool({ folder: folder.path })
  // More than fits into memory and into one file.
  const recorder = offline.recorder({ spool, maxQueue: 1_000, closeMs: 1 })
  for (let nth = 0; nth < 3_500; nth += 1) assert(recorder.record(event(nth)))
  const { queued, dropped } = await recorder.close()
  assert.deepEqual([queued, dropped], [3_500, 0])
  assert.equal(eventFiles(folder.path).length, 4)
  await using next = annals.recorder({ spool, concurrency: 1 })
  await next.flush()
  const stored = (await walkEvents(service, key)).toSorted((a, b) => a.seq - b.seq)
  assert.deepEqual(
    stored.map(({ action }) => action),
    Array.from({ length: 3_500 }, (_, nth) => `a${nth}`),
  )
  await next.close()
  assert.deepEqual(readdirSync(folder.path), [])
})

test('links and pipes in the folder are neither read nor deleted, and hold up no events', async () => {
  const { annals, stored } = await connect()
  await using folder = await temporaryFolder()
  await using outside = await temporaryFolder()
  const precious = join(outside.path, 'precious')
  writeFileSync(precious, `${JSON.stringify(event(7))}\n`)
  symlinkSync(precious, join(folder.path, '000000000001.jsonl'))
  execFileSync('mkfifo', [join(folder.path, '000000000002.jsonl')])
  await using recorder = annals.recorder({ spool: diskSpool({ folder: folder.path }) })
  assert(recorder.record(event(1)))
  await recorder.close()
  assert.deepEqual(await stored(), ['a1'])
  assert.deepEqual(eventFiles(folder.path), ['000000000001.jsonl', '000000000002.jsonl'])
})

test('while everything is sent, the spool stays small and empties itself', async () => {
  const { annals, stored } = await connect()
  await using folder = await temporaryFolder()
  const spool = diskSpool({ folder: folder.path })
  await using recorder = annals.recorder({ spool, flushMs: 1 })
  for (let nth = 0; nth < 2_500; nth += 1) {
    await recorder.recordOrWait(event(nth))
    if (nth % 500 === 0) await recorder.flush()
  }
  await recorder.flush()
  assert.deepEqual(
    eventFiles(folder.path).map((name) => readFileSync(join(folder.path, name), 'utf8')),
    [''],
  )
  assert.equal((await stored()).length, 2_500)
})

test('a full spool drops events instead of filling the disk', async () => {
  const { offline } = await connect()
  await using folder = await temporaryFolder()
  const spool = diskSpool({ folder: folder.path, bytesMax: 10_000 })
  await using recorder = offline.recorder({ spool, closeMs: 1 })
  for (let nth = 0; nth < 1_000; nth += 1) recorder.record(event(nth))
  const { queued, dropped } = recorder.stats
  assert.equal(queued + dropped, 1_000)
  assert(queued > 30 && dropped > 500, JSON.stringify(recorder.stats))
  const bytes = eventFiles(folder.path).map((name) => readFileSync(join(folder.path, name)).length)
  assert(bytes.reduce((sum, size) => sum + size, 0) <= 10_000)
})

test('a partial or damaged line that a crash left does not stop the recorder', async () => {
  const { annals, stored } = await connect()
  await using folder = await temporaryFolder()
  const path = join(folder.path, '000000000007.jsonl')
  writeFileSync(path, `${JSON.stringify(event(0))}\n\0\0\n${JSON.stringify(event(1))}\n`)
  appendFileSync(path, JSON.stringify(event(2)).slice(0, 20))
  const refused: unknown[] = []
  await using recorder = annals.recorder({
    spool: diskSpool({ folder: folder.path }),
    onRefused: ({ event }) => refused.push(event),
  })
  await recorder.flush()
  assert.deepEqual(new Set(await stored()), new Set(['a0', 'a1']))
  assert.deepEqual(refused, [null])
})

test('a folder has one owner at a time, and a dead owner is replaced', async () => {
  const { annals } = await connect()
  await using folder = await temporaryFolder()
  const spool = diskSpool({ folder: folder.path })
  const recorder = annals.recorder({ spool })
  assert.throws(() => annals.recorder({ spool }), { code: 'spool_in_use' })
  await recorder.close()
  // The second one belongs to root, so an ordinary user can't signal it.
  for (const owner of [
    `owner-${process.pid}-another-boot-1`,
    'owner-1-another-boot-1',
    'owner-999999999-',
  ]) {
    writeFileSync(join(folder.path, owner), '')
    await annals.recorder({ spool }).close()
  }
  await eventually(() => assert.deepEqual(readdirSync(folder.path), []))
})
