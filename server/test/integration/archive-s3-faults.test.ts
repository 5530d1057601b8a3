import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { archiveLedger } from '../../src/outlet/archive/archive-ledger.ts'
import { ReadBack } from '../../src/outlet/archive/read-back.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { systemClock as clock } from '../../src/platform/time/clock.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { query } from '../harness/database/engine.ts'
import { storeEvents } from '../harness/export/exports.ts'
import {
  type S3Response,
  failure,
  listenAsMetadata,
  S3Server,
  setS3Environment,
} from '../harness/archive/s3-server.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const logger = createLogger('silent')
const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const metadata = await listenAsMetadata()
stack.defer(() => void metadata.server.close())
setS3Environment(metadata)
const s3 = stack.use(await S3Server.listen())
// Without its own archive: only the runs below archive.
const annals = stack.use(await startTestApp({ hasArchive: false }))
const { connection } = annals.database
const keeper = stack.use(
  new Database({ connection, role: 'annals_keeper', connectionsMax: 3, logger }),
)
const archive = stack.use(
  await openObjectStore(`s3://${s3.bucket}/annals`, {
    s3Endpoint: s3.endpoint,
    s3Region: null,
    s3Limits: { attemptsMax: 1 },
  }),
)
const { workspace, workspaceKey } = await annals.createCompany()
let sent = 0

async function sendOne(): Promise<void> {
  await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a', metadata: { sent } }])
  sent += 1
}

const readBack = new ReadBack()
after(() => readBack[Symbol.asyncDispose]())
const archiveAll = () =>
  archiveLedger(
    { connection, database: keeper, archive, readBack, clock, logger },
    { beforeMs: Date.now() + 1_000, thresholds: { eventsMin: 1, overdueMs: 0 } },
    new AbortController().signal,
  )

async function assertNothingLost(what: string): Promise<void> {
  const verdict = await verifyChain(annals.app.database, archive, workspace.id)
  assert.deepEqual(verdict, { ok: true, workspaceId: workspace.id, events: sent }, what)
}

function passAll(): void {
  s3.alter = (_, response) => response
  s3.intercept = () => null
}

function flipped({ status, headers, body }: S3Response): S3Response {
  const { 'x-amz-checksum-crc32': _, ...rest } = headers
  const changed = Buffer.from(body)
  const middle = Math.floor(changed.length / 2)
  if (changed.length > 0) changed.writeUInt8(changed.readUInt8(middle) ^ 1, middle)
  return { status, headers: rest, body: changed }
}

const page = (body: string): S3Response => ({
  status: 200,
  headers: { 'content-type': 'text/html', etag: '"0"' },
  body: Buffer.from(body),
})

/** What replaces a response. `isStored`: the server still gets the request. */
const FAULTS: { what: string; isStored: boolean; change: (response: S3Response) => S3Response }[] =
  [
    { what: 'a flipped bit', isStored: true, change: flipped },
    { what: 'a page with status 200', isStored: true, change: () => page('<html>portal</html>') },
    { what: 'an empty body with status 200', isStored: true, change: () => page('') },
    { what: 'status 200 without doing it', isStored: false, change: () => page('') },
  ]
/** More than the requests of a run. */
const REQUESTS_MAX = 40

for (const { what, isStored, change } of FAULTS) {
  test(`no event is lost when one response of S3 is ${what}`, async () => {
    for (let faulty = 0; faulty < REQUESTS_MAX; faulty += 1) {
      // So that each run also gives the archive its identity.
      await query(connection, 'delete from archive_identity')
      await sendOne()
      let nth = 0
      let isOver = true
      const isFaulty = (): boolean => {
        nth += 1
        if (nth - 1 !== faulty) return false
        isOver = false
        return true
      }
      if (isStored) {
        s3.alter = (_, response) => (isFaulty() ? change(response) : response)
      } else {
        s3.intercept = () => (isFaulty() ? change(page('')) : null)
      }
      // A refused run is fine: the next one archives its event too.
      await archiveAll().catch(() => {})
      passAll()
      if (isOver) return await assertNothingLost(what)
    }
    assert.fail('the run has no end')
  })
}

test('archives with credentials that do not allow deleting', async () => {
  await sendOne()
  s3.intercept = ({ method }) => (method === 'DELETE' ? failure(403, 'AccessDenied') : null)
  const { events, failed } = await archiveAll()
  assert.deepEqual({ events, failed }, { events: 1, failed: 0 })
  passAll()
  await assertNothingLost('without deletion')
})
