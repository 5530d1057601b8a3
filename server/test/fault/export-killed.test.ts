import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { globSync } from 'node:fs'
import { after, test } from 'node:test'
import {
  assertDownloads,
  downloadHalf,
  type Reference,
  rerunExport,
  downloadReference,
} from '../harness/export/cut-downloads.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { download, makeExport, readJob, storeBulk, storeEvents } from '../harness/export/exports.ts'
import { FaultService } from '../harness/app/fault-service.ts'
import { repeatFault } from '../harness/timing/fault-rounds.ts'

const annals = await FaultService.start()
after(() => annals[Symbol.asyncDispose]())

/**
 * 16 MB, more than the sockets buffer, so that a download is still in progress when the fault
 * happens.
 */
const ROWS = 320
const HALF_BYTES_MAX = 3_000_000
const FORMATS = ['JSONL', 'CSV'] as const

const { workspaceKey: key } = annals.takeWorkspace()
await storeBulk(annals, key, ROWS)

/** Taken before the first fault: the rows don't change, so the bytes must be the same after every fault. */
const references = await Promise.all(
  FORMATS.map(async (format) => ({
    format,
    reference: await downloadReference(annals, key, { format, rows: ROWS }),
  })),
)

/** Opens a download in each format and leaves it half read. */
async function openHalves() {
  return await Promise.all(
    references.map(async ({ format, reference }) => {
      const jobId = await makeExport(annals, key, { format })
      const bytes = randomInt(1, HALF_BYTES_MAX)
      return {
        jobId,
        reference,
        half: await downloadHalf(annals, key, { jobId, reference, bytes }),
      }
    }),
  )
}

async function assertRunning(jobKey: string, jobId: string): Promise<void> {
  const { status, finishedAt, errorCode } = await eventually(() => readJob(annals, jobKey, jobId))
  assert.deepEqual([status, finishedAt, errorCode], ['RUNNING', null, null])
}

/**
 * Waits until the service works again, including the writer. The stored events don't affect the
 * tests.
 */
async function servesAgain(): Promise<void> {
  await eventually(() => storeEvents(annals, key, [{ category: 'fault', action: 'over' }]))
}

test('killing the service during downloads cuts them, and after a restart each can be downloaded completely', async () => {
  await repeatFault(async () => {
    const opened = await openHalves()
    await annals.kill()
    for (const { half } of opened) await half.breaks()
    await annals.restart()
    for (const { jobId, reference } of opened) {
      await assertRunning(key, jobId)
      await assertDownloads(annals, key, jobId, reference)
    }
  })
})

test('killing PostgreSQL during downloads cuts them, and the same service can send each one completely', async () => {
  await repeatFault(async () => {
    const opened = await openHalves()
    annals.killPostmaster()
    for (const { half } of opened) await half.breaks()
    for (const { jobId, reference } of opened) {
      await assertRunning(key, jobId)
      await assertDownloads(annals, key, jobId, reference)
    }
  })
})

test('while events are archived and processes are killed, every completed download has the right bytes', async () => {
  const { workspaceKey } = annals.takeWorkspace()
  await storeBulk(annals, workspaceKey, ROWS)
  const archive = new MovingArchive(workspaceKey, ROWS)
  const kills = {
    service: async () => {
      await annals.kill()
      await annals.restart()
    },
    PostgreSQL: async () => annals.killPostmaster(),
  }
  await repeatFault(async () => {
    for (const kill of Object.values(kills)) {
      await archive.grow()
      const { jobId, reference } = archive
      const openHalf = async (halfJobId: string) => {
        const bytes = randomInt(1, HALF_BYTES_MAX)
        return await downloadHalf(annals, workspaceKey, { jobId: halfJobId, reference, bytes })
      }
      // This download isn't interrupted, but the rows that it reads next are moved out of the
      // table.
      const spared = await openHalf(await rerunExport(annals, workspaceKey, jobId))
      await archive.move()
      assert(await spared.isWhole())
      const half = await openHalf(jobId)
      const moving = archive.move()
      await archive.isMoving()
      const others = archive.downloadAgain()
      await kill()
      // An open file is read to its end without PostgreSQL, and the kernel can have buffered the rest
      // before the service ended. Either way, `isWhole` checks the bytes.
      if (!(await half.isWhole())) {
        await assertRunning(workspaceKey, jobId)
        await assertDownloads(annals, workspaceKey, jobId, reference)
      }
      await Promise.all([moving, others])
      await servesAgain()
    }
  })
  await archive.settle()
})

const TIMES = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' }
const EXPORT = { source: 'HOT_AND_ARCHIVED', format: 'JSONL', filters: TIMES }
const ROWS_PER_STEP = 40
const DOWNLOADS_BESIDE = 2

/** A workspace whose events `annals archive` archives step by step, alongside the service. */
class MovingArchive {
  readonly #key: string
  #rows: number
  /** For each step, the time until which its events were received. */
  #steps: string[] = []
  #segments = 0
  jobId = ''
  reference: Reference = { body: Buffer.alloc(0), sha256: '', rows: 0 }

  constructor(workspaceKey: string, rows: number) {
    this.#key = workspaceKey
    this.#rows = rows
  }

  /** Stores new events, which are still in the table, and creates a job for all events. */
  async grow(): Promise<void> {
    this.#steps = []
    for (let step = 0; step < 2; step += 1) {
      await storeBulk(annals, this.#key, ROWS_PER_STEP)
      this.#rows += ROWS_PER_STEP
      this.#steps.push(new Date(Date.now() + 1).toISOString())
    }
    this.reference = await downloadReference(annals, this.#key, { ...EXPORT, rows: this.#rows })
    this.jobId = await makeExport(annals, this.#key, EXPORT)
  }

  /** Archives the next step. It is fine if the run is killed with its database. */
  async move(): Promise<void> {
    this.#segments = countSegments()
    await annals.run('archive', '--before', this.#steps.shift() ?? '')
  }

  /** Waits until the file exists. Its rows may still be in the table. */
  async isMoving(): Promise<void> {
    await eventually(() => assert(countSegments() > this.#segments))
  }

  /** Downloads the same rows meanwhile: some downloads are cut or refused, but none is wrong. */
  async downloadAgain(): Promise<void> {
    for (let nth = 0; nth < DOWNLOADS_BESIDE; nth += 1) {
      const received = await rerunExport(annals, this.#key, this.jobId)
        .then((jobId) => download(annals, this.#key, jobId))
        .catch(() => null)
      if (received?.status === 200) assert.equal(received.sha256, this.reference.sha256)
    }
  }

  /** Archives the rest, and checks that nothing is lost and the files alone return the same bytes. */
  async settle(): Promise<void> {
    const { code, stdout, stderr } = await annals.run(
      'archive',
      '--before',
      new Date(Date.now() + 1_000).toISOString(),
    )
    assert.equal(code, 0, stdout + stderr)
    await annals.assertVerifies()
    const jobId = await rerunExport(annals, this.#key, this.jobId)
    await assertDownloads(annals, this.#key, jobId, this.reference)
  }
}

function countSegments(): number {
  return globSync('**/*.parquet', { cwd: annals.folder.path('archive') }).length
}
