import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { appendInTransaction } from '../../src/intake/append-in-transaction.ts'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { insertTest } from '../../src/outlet/webhook/delivery/delivery-store.ts'
import {
  claimDue,
  failWaiting,
  fanOut,
  listWork,
  type WebhookWork,
} from '../../src/outlet/webhook/dispatch/delivery-queue-store.ts'
import { settleAttempts } from '../../src/outlet/webhook/dispatch/settle-store.ts'
import { WorkWatch } from '../../src/outlet/webhook/dispatch/work-watch.ts'
import { markWebhookDisabled, markWebhookEnabled } from '../../src/outlet/webhook/webhook-store.ts'
import { newId, randomHex, type WorkspaceId } from '../../src/platform/id.ts'
import type { Queryable } from '../../src/platform/pg/database.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { rounds } from '../harness/timing/fault-rounds.ts'
import { acceptedSettlement } from '../harness/webhook/deliveries.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'
import { SeededRandom } from '../soak/seeded-random.ts'

const HOUR = 3_600_000
const WORKSPACES = 5
/** Transactions with the same group. */
const GROUP = 16
const STEPS = rounds(250, 4_000)
const ROOM = { count: 4, bytes: 1_000_000 }

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

/** Never checks all webhooks by itself, which would hide a change that a poll misses. */
function watch({ workspacesMax = 1_000 } = {}): WorkWatch {
  return new WorkWatch({
    db,
    monotonic: () => 0,
    workspacesMax,
    checkAllMs: Infinity,
    recountMs: 0,
  })
}

const search = (workspaceIds: WorkspaceId[] | null, now: Date): Promise<WebhookWork[]> => {
  const cursor = { companyId: null, webhookIds: new Map() }
  return listWork(db, { workspaceIds, now, openMax: 3, cursor, limit: 1_000 })
}

/** Every webhook with work is in the workspaces that the watch names. */
async function assertFindsAll(one: WorkWatch, about: string): Promise<void> {
  await one.poll()
  for (const now of [new Date(), new Date(Date.now() + HOUR)]) {
    assert.deepEqual(await search(one.workspaceIds, now), await search(null, now), about)
  }
}

type Webhook = { workspaceId: WorkspaceId; webhookId: WebhookId }

/** A transaction that stays open until `end` is called. */
async function hold(work: (trx: Queryable) => Promise<unknown>): Promise<() => Promise<void>> {
  const { promise: isDone, resolve: finish } = Promise.withResolvers<void>()
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>()
  const ended = db.transaction().execute(async (trx) => {
    await work(trx)
    open()
    await isDone
  })
  await Promise.race([isOpen, ended])
  return async () => {
    finish()
    await ended
  }
}

async function createWebhooks({ workspaces = WORKSPACES, webhooksEach = 2 } = {}) {
  const names = Array.from({ length: workspaces }, (_, nth) => `Workspace ${nth}`)
  const [first = '', ...others] = names
  const company = await annals.createCompany({ workspaces: [first, ...others] })
  const webhooks: Webhook[] = []
  for (const { id: workspaceId } of company.workspaces) {
    for (let nth = 0; nth < webhooksEach; nth += 1) {
      const owner = { ...company, workspace: { ...company.workspace, id: workspaceId } }
      const webhookId = await makeWebhook(annals, owner, { url: 'http://127.0.0.1:1/' })
      webhooks.push({ workspaceId, webhookId })
    }
  }
  const append = (trx: Queryable, workspaceId: WorkspaceId) => {
    const origin = { companyId: company.company.id, workspaceId, traceId: randomHex(16) }
    return appendInTransaction(trx, { category: 'c', action: 'a', actor: {} }, origin, Date.now())
  }
  return { webhooks, append }
}

/** Uses up transaction numbers, so that the next ones are in another group. */
const burn = (count: number) =>
  query(
    annals.database.connection,
    `do $$ begin for n in 1..${count} loop perform pg_current_xact_id(); commit; end loop; end $$`,
  )

/** What happens to webhooks, at random. At most one transaction stays open at a time. */
async function createHistory(random: SeededRandom) {
  const { webhooks, append } = await createWebhooks()
  let held: { kind: 'commit' | 'enable'; webhook: Webhook; end: () => Promise<void> } | null = null
  const lease = () => ({ token: newId(), until: new Date(Date.now() + random.below(1_000)) })
  const now = () => new Date()
  const refOf = ({ workspaceId, webhookId }: Webhook) => ({ workspaceId, id: webhookId })

  const enable = (trx: Queryable, webhook: Webhook) =>
    markWebhookEnabled(trx, refOf(webhook), now())
  const disable = (webhook: Webhook) =>
    markWebhookDisabled(db, refOf(webhook), { reason: 'r', now: now() })
  const holds = {
    commit: (webhook: Webhook) => hold((trx) => append(trx, webhook.workspaceId)),
    enable: async (webhook: Webhook) => {
      await disable(webhook)
      return await hold((trx) => enable(trx, webhook))
    },
  }
  const steps: Record<string, (webhook: Webhook) => Promise<unknown>> = {
    append: ({ workspaceId }) => db.transaction().execute((trx) => append(trx, workspaceId)),
    burn: () => burn(random.below(2 * GROUP)),
    test: (webhook) => insertTest(db, { ...webhook, id: newId(), now: now() }),
    enable: (webhook) => enable(db, webhook),
    disable,
    end: (webhook) => failWaiting(db, { ...webhook, reason: 'r', limit: 100, now: now() }),
    pause: ({ webhookId }) =>
      sql`update webhook set resting_until = now() + ${random.below(3) - 1} * interval '1 hour'
           where id = ${webhookId}`.execute(db),
    claim: (webhook) => claimDue(db, { ...webhook, room: ROOM, lease: lease(), now: now() }),
    settle: async (webhook) => {
      const rows = await query(
        annals.database.connection,
        `select id, sequence::int, lease from webhook_delivery
          where webhook_id = '${webhook.webhookId}' and status = 'SENDING'`,
      )
      const isGood = random.chance(0.5)
      const end = isGood ? {} : { status: 'RETRY_SCHEDULED' as const, dueAt: new Date(0) }
      for (const { id, sequence, lease: token } of rows) {
        const row = { id: String(id), sequence: Number(sequence) }
        const settlement = acceptedSettlement(row, webhook, { lease: String(token), now: now() })
        await settleAttempts(db, [{ ...settlement, ...end }])
      }
    },
    fanOut: async ({ webhookId }) => {
      const work = (await search(null, now())).find((one) => one.webhookId === webhookId)
      if (!work) return
      const room = { ...ROOM, count: random.below(3) }
      await fanOut(db, { webhook: work, toSeq: work.headSeq, room, lease: lease(), now: now() })
    },
    hold: async (webhook) => {
      const kind = random.pick(['commit', 'enable'] as const)
      held = { kind, webhook, end: await holds[kind](webhook) }
    },
  }
  const end = async () => {
    await held?.end()
    held = null
  }
  /** Whether the open transaction holds no lock that the step waits for. */
  const isFree = (name: string, { workspaceId, webhookId }: Webhook): boolean => {
    if (held?.kind === 'commit')
      return name !== 'append' || held.webhook.workspaceId !== workspaceId
    return name === 'append' || held?.webhook.webhookId !== webhookId
  }
  const step = async (): Promise<string> => {
    if (held && random.chance(0.2)) {
      await end()
      return 'release'
    }
    const name = random.pick(Object.keys(steps).filter((one) => one !== 'hold' || !held))
    await steps[name]?.(random.pick(webhooks.filter((webhook) => isFree(name, webhook))))
    return name
  }
  return { step, end }
}

test('a poll finds the same work as a search of all webhooks, whatever happened since the last', async (t) => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 32))
  t.diagnostic(`SEED=${seed}`)
  const random = new SeededRandom(seed)
  const watches = [watch(), watch(), watch(), watch({ workspacesMax: 1 })]
  const history = await createHistory(random)
  const names: string[] = []
  for (let nth = 0; nth < STEPS; nth += 1) {
    names.push(await history.step())
    const about = `SEED=${seed}, after ${names.slice(-20).join(', ')}`
    if (random.chance(0.5)) await assertFindsAll(random.pick(watches), about)
  }
  await history.end()
  for (const one of watches) await assertFindsAll(one, `SEED=${seed}, at the end`)
})

const createOne = async () => {
  const { webhooks, append } = await createWebhooks({ workspaces: 1, webhooksEach: 1 })
  const [webhook] = webhooks
  assert(webhook)
  const { workspaceId, webhookId: id } = webhook
  return { workspaceId, id, append: (trx: Queryable) => append(trx, workspaceId) }
}

test('a poll finds an event whose transaction ends after many others', async () => {
  const { workspaceId, append } = await createOne()
  const one = watch()
  const end = await hold(append)
  for (let polls = 0; polls < 2; polls += 1) {
    await one.poll()
    await burn(2 * GROUP)
  }
  assert(!one.workspaceIds?.includes(workspaceId))
  await end()
  await one.poll()
  assert(one.workspaceIds?.includes(workspaceId))
})

test('a poll finds an event that was stored while its webhook was being enabled', async () => {
  const { workspaceId, id, append } = await createOne()
  const one = watch()
  await markWebhookDisabled(db, { workspaceId, id }, { reason: 'r', now: new Date() })
  const endAppend = await hold(append)
  await burn(2 * GROUP)
  const endEnable = await hold((trx) => markWebhookEnabled(trx, { workspaceId, id }, new Date()))
  await endAppend()
  for (let polls = 0; polls < 2; polls += 1) await one.poll()
  assert(!one.workspaceIds?.includes(workspaceId))
  await endEnable()
  await one.poll()
  assert(one.workspaceIds?.includes(workspaceId))
})

test('a poll that finds more webhooks than it may read asks for a search of all, even in one workspace', async () => {
  const { webhooks } = await createWebhooks({ workspaces: 1, webhooksEach: 3 })
  for (const { webhookId } of webhooks) {
    await query(
      annals.database.connection,
      `update webhook set open_count = 1 where id = '${webhookId}'`,
    )
  }
  const one = watch({ workspacesMax: 2 })
  await one.poll()
  assert.equal(one.workspaceIds, null)
})
