import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLogger } from '../../src/platform/logger.ts'
import { systemClock } from '../../src/platform/time/clock.ts'
import { SharedClock } from '../../src/platform/time/shared-clock.ts'
import { DAY_MS } from '../../src/platform/time/time-units.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { query } from '../harness/database/engine.ts'
import { hang, startReceiver } from '../harness/webhook/receiver.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const logger = createLogger('silent')

/** Two minutes ahead: longer than a lease. */
const SKEW = `
  const { now } = Date
  Date.now = () => now() + 120_000
`

test('a node whose clock is ahead does not take leases of other nodes, and warns', async () => {
  await using annals = await startTestApp({ env: ANY_DESTINATION, role: 'api' })
  await using receiver = await startReceiver()
  await using leasedReceiver = await startReceiver()
  await using slowReceiver = await startReceiver(hang)
  const company = await annals.createCompany()
  const [sent, leased, slow] = [
    await makeWebhook(annals, company, { url: receiver.url }),
    await makeWebhook(annals, company, { url: leasedReceiver.url }),
    await makeWebhook(annals, company, { url: slowReceiver.url }),
  ]
  const sendTest = (id: string) =>
    annals.call('POST', `/v1/webhooks/${id}/test`, { key: company.companyKey })
  await sendTest(leased)
  // As if another node were sending it.
  await query(
    annals.database.connection,
    `update webhook_delivery
        set status = 'SENDING', attempt = 1, lease = gen_random_uuid(),
            due_at = now() + interval '55 seconds'
      where webhook_id = '${leased}'`,
  )
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-skew-'))
  const preload = join(folder.path, 'skew.mjs')
  await writeFile(preload, SKEW)
  await using node = new AnnalsProcess(['serve', '--role', 'worker'], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    NODE_OPTIONS: `--import ${preload}`,
    ...ANY_DESTINATION,
  })
  await node.printed(/"event":"clock\.skew","offsetMs":-1(19|20)\d{3}/)
  // Each is sent in a separate round, which would also send the leased one.
  for (const count of [1, 2, 3]) {
    await sendTest(sent)
    await receiver.waitFor(count)
  }
  assert.equal(leasedReceiver.requests.length, 0)
  await sendTest(slow)
  await slowReceiver.waitFor(1)
  const [row] = await query(
    annals.database.connection,
    `select due_at between now() + interval '30 seconds' and now() + interval '61 seconds' as "isNear"
       from webhook_delivery where webhook_id = '${slow}'`,
  )
  assert.equal(row?.['isNear'], true, 'the lease ends by the clock of the database')
})

test('a node whose clock is changed knows the time of the database at once', async (t) => {
  await using annals = await startTestApp({ role: 'api' })
  const { db } = annals.app.database
  const trueNow = Date.now
  // One mock: undoing several in their order would leave one of them.
  let wrongMs = 0
  t.mock.method(Date, 'now', () => trueNow() + wrongMs)
  for (const beforeMs of [-400 * DAY_MS, 0, 90 * 60_000]) {
    for (const afterMs of [0, -400 * DAY_MS, DAY_MS]) {
      wrongMs = beforeMs
      await using shared = new SharedClock({ db, clock: systemClock, logger })
      await shared.measureNow()
      wrongMs = afterMs
      const differenceMs = shared.now() - trueNow()
      assert(Math.abs(differenceMs) < 2_000, `${beforeMs} to ${afterMs}: ${differenceMs} ms`)
    }
  }
})
