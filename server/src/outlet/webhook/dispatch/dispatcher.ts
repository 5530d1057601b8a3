import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, monotonicClock } from '../../../platform/time/clock.ts'
import { newId, type WorkspaceId } from '../../../platform/id.ts'
import type { Logger } from '../../../platform/logger.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { leaseToken, type NodePresence } from '../../../platform/node/node-presence.ts'
import { isOutage, type Queryable } from '../../../platform/pg/database.ts'
import { RepeatedWarning } from '../../../platform/repeated-warning.ts'
import type { SecretBox } from '../../../platform/secret/secret-box.ts'
import type { ServiceAudit } from '../../../tenancy/caller.ts'
import { raiseNotices } from '../../../tenancy/notice/notice-store.ts'
import { type AttemptDeps, runAttempt, openCredentials, readyDelivery } from './attempt.ts'
import { disablesWebhook } from './attempt-result.ts'
import type { WebhookId } from '../delivery/delivery.ts'
import {
  claimDue,
  failWaiting,
  fanOut,
  type Lease,
  type LeasedWork,
  listWatchedWorkspaces,
  listWork,
  releaseLeases,
  type WebhookWork,
} from './delivery-queue-store.ts'
import {
  DISPATCH_LIMITS,
  type DispatchLimits,
  idleFanOutCount,
  idleFanOutMs,
} from './dispatch-limits.ts'
import { type Held, type Hold, HoldTable } from './hold-table.ts'
import { reportAttempt } from './report-attempt.ts'
import { targetAt } from '../secret/rotation.ts'
import type { Pacing } from './send-pacer.ts'
import type { Sender } from '../send/sender.ts'
import { SettleQueue } from './settle-queue.ts'
import { settleAttempts, type SettledWebhook } from './settle-store.ts'
import { takeOverLeases } from './take-over-store.ts'
import { webhookResource } from '../webhook-actions.ts'
import { disabledNotice } from '../webhook-notice.ts'
import { markWebhookDisabled, listTargets } from '../webhook-store.ts'
import { WorkOrder } from './work-order.ts'
import { WorkWatch } from './work-watch.ts'

export type DispatcherOptions = Omit<AttemptDeps, 'sender' | 'charge'> & {
  db: Queryable
  sender: Sender
  box: SecretBox
  clock: Clock
  logger: Logger
  metrics: Metrics
  audit: ServiceAudit
  /** Lets other nodes take over the deliveries of this one if it dies, and this one theirs. */
  presence?: NodePresence
  pacing?: Pacing
  limits?: Partial<DispatchLimits>
}

/**
 * Turns events into deliveries and sends them.
 *
 *   ledger ──fan out──▶ PENDING or leased ──lane──▶ receiver ──settle queue──▶ database
 *
 * No transaction is open while a request is sent: a lease determines which node sends, and when it expires,
 * another node can send. Each webhook has its own lane, so a bad receiver doesn't delay others.
 */
export class Dispatcher implements AsyncDisposable {
  readonly #options: DispatcherOptions
  readonly #limits: DispatchLimits
  readonly #holds: HoldTable
  readonly #settleQueue: SettleQueue
  readonly #stop = new AbortController()
  /** Being sent, until their outcome is in the settle queue. */
  readonly #sending = new Set<Held>()
  /** Deliveries that had no connection yet when the service stopped. */
  readonly #canceled: Held[] = []
  /** Workspaces with a webhook that can have work, as of a moment ago. */
  #watched: ReadonlySet<WorkspaceId> = new Set()
  #watchedAtMs = Number.NEGATIVE_INFINITY
  #targetsCheckedAtMs = Number.NEGATIVE_INFINITY
  readonly #workWatch: WorkWatch
  #polledAtMs = Number.NEGATIVE_INFINITY
  readonly #order = new WorkOrder()
  readonly #failed = new RepeatedWarning('dispatch.failed')
  readonly #unreadable = new RepeatedWarning('secret.unreadable')
  /** Set at the end of shutdown. After that, outcomes are no longer recorded. */
  #isOver = false
  #wake: (() => void) | null = null
  #isWoken = false
  readonly #loop: Promise<void>

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#limits = { ...DISPATCH_LIMITS, ...options.limits }
    this.#holds = new HoldTable({
      limits: this.#limits,
      clock: options.clock,
      random: options.random,
      pacing: options.pacing,
      send: (delivery) => void this.#send(delivery),
    })
    const { workspacesSearchedMax: workspacesMax, checkAllMs, recountMs } = this.#limits
    this.#workWatch = new WorkWatch({
      db: options.db,
      monotonic: monotonicClock,
      workspacesMax,
      checkAllMs,
      recountMs,
    })
    this.#settleQueue = new SettleQueue({
      write: (settlements) => settleAttempts(options.db, settlements),
      onSettled: (webhooks) => this.#onSettled(webhooks),
      logger: options.logger,
    })
    options.presence?.onDead((nodeIds) => this.#takeOver(nodeIds))
    this.#loop = this.#run()
  }

  /** Call it after storing events of these workspaces. Does nothing if none has a webhook. */
  wakeFor(workspaceIds: Iterable<WorkspaceId>): void {
    if (this.#watched.size === 0) return
    const watched = [...workspaceIds].filter((workspaceId) => this.#watched.has(workspaceId))
    if (watched.length === 0) return
    this.#workWatch.note(watched)
    this.#startRound()
  }

  /** Call it after a change of a webhook or its deliveries, so that the next round starts now and knows it. */
  wake(): void {
    this.#watchedAtMs = Number.NEGATIVE_INFINITY
    this.#polledAtMs = Number.NEGATIVE_INFINITY
    this.#startRound()
  }

  #startRound(): void {
    this.#isWoken = true
    this.#wake?.()
  }

  get heldCount(): number {
    return this.#holds.count
  }

  get heldBytes(): number {
    return this.#holds.bytes
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#isWoken = false
      try {
        await this.#runRound()
      } catch (error) {
        this.#failed.warn(this.#options.logger, { err: error })
      }
      await this.#waitForWork()
    }
  }

  /** Waits until the next poll is due or `wake` is called. */
  async #waitForWork(): Promise<void> {
    const { gatherMs } = this.#limits
    const pollMs = this.#isIdle ? this.#limits.idlePollMs : this.#limits.pollMs
    const { signal } = this.#stop
    await delay(gatherMs, undefined, { signal }).catch(() => {})
    if (this.#isWoken || signal.aborted) return
    const timer = new AbortController()
    await Promise.race([
      new Promise<void>((resolve) => (this.#wake = resolve)),
      delay(pollMs - gatherMs, undefined, { signal: timer.signal }).catch(() => {}),
    ])
    this.#wake = null
    timer.abort()
    if (!this.#isWoken) this.#polledAtMs = Number.NEGATIVE_INFINITY
  }

  /**
   * Serves the webhooks that have work, round-robin by company, for at most `roundMsMax`. The next round starts
   * where this one ended, so it serves the webhooks that are left.
   */
  async #runRound(): Promise<void> {
    const { webhooksPerRoundMax, roundMsMax, statementsAtOnceMax } = this.#limits
    await this.#watch()
    // Without leases, it would have to release what it claims.
    if (!this.#hasWebhooks || this.#options.presence?.hasLeases === false) return
    await this.#releaseOutdated()
    const works = await this.#listWork()
    const endsAtMs = performance.now() + roundMsMax
    const isOver = () => performance.now() >= endsAtMs
    const next = works.entries()
    let servedCount = 0
    await Promise.all(
      Array.from({ length: statementsAtOnceMax }, async () => {
        for (const [index, work] of next) {
          servedCount = index + 1
          if (!(await this.#tryToServe(work)) || isOver()) return
        }
      }),
    )
    const hasMore = servedCount < works.length || works.length === webhooksPerRoundMax
    const served = works.slice(0, servedCount)
    const hasLeased = this.#order.endRound(served, { hasAll: !hasMore })
    if (hasMore && hasLeased) this.#startRound()
    this.#holds.forgetIdle()
  }

  /** Polls for changes by other nodes, and lists the webhooks with work among those that may have some. */
  async #listWork(): Promise<WebhookWork[]> {
    const { pollMs, webhooksPerRoundMax, openPerWebhookMax } = this.#limits
    const nowMs = monotonicClock()
    if (nowMs - this.#polledAtMs >= pollMs) {
      // Set before the query, so that a `wake` during the query is not lost.
      this.#polledAtMs = nowMs
      await this.#workWatch.poll()
    }
    const { workspaceIds } = this.#workWatch
    if (workspaceIds?.length === 0) return []
    return await listWork(this.#options.db, {
      workspaceIds,
      now: this.#now(),
      openMax: openPerWebhookMax,
      cursor: this.#order.cursor,
      limit: webhooksPerRoundMax,
    })
  }

  /**
   * Whether this node knows everything that is due soon: it sees its own events, and there is no other node that
   * could store some.
   */
  get #isIdle(): boolean {
    if (!this.#hasWebhooks) return true
    const isAlone = this.#options.presence?.peers.length === 0
    return isAlone && this.#holds.count === 0 && this.#workWatch.workspaceIds?.length === 0
  }

  /** If false, only the list of watched workspaces is read, because there is nothing to do. */
  get #hasWebhooks(): boolean {
    return this.#watched.size > 0 || this.#holds.count > 0
  }

  /**
   * Caches the list: querying after every commit would cost a service without webhooks a tenth of its time.
   */
  async #watch(): Promise<void> {
    const nowMs = monotonicClock()
    if (this.#hasWebhooks && nowMs - this.#watchedAtMs < this.#limits.watchMs) return
    // Before the query, so that the list is read again after a change during the query.
    this.#watchedAtMs = nowMs
    this.#watched = await listWatchedWorkspaces(this.#options.db)
  }

  /**
   * A delivery can wait behind a slow receiver for `readyMsMax`. If its webhook changes meanwhile, on
   * any node, the delivery is released and claimed again with the new URL, secrets and headers.
   */
  async #releaseOutdated(): Promise<void> {
    const { db, clock } = this.#options
    const nowMs = clock()
    if (Math.abs(nowMs - this.#targetsCheckedAtMs) < this.#limits.targetCheckMs) return
    this.#targetsCheckedAtMs = nowMs
    const webhookIds = this.#holds.busyWebhookIds
    if (webhookIds.length === 0) return
    const targets = await listTargets(db, webhookIds)
    await this.#releaseUnsent(this.#holds.takeOutdated(webhookIds, targets))
  }

  /**
   * An error with one webhook must not stop the others. Returns false if the database is unavailable: waiting
   * for each webhook to fail would take minutes.
   */
  async #tryToServe(work: WebhookWork): Promise<boolean> {
    try {
      await this.#serve(work)
      return true
    } catch (error) {
      this.#failed.warn(this.#options.logger, { webhookId: work.webhookId, err: error })
      return !isOutage(error)
    }
  }

  async #serve(work: WebhookWork): Promise<void> {
    if (this.#stop.signal.aborted) return
    if (!work.isEnabled) {
      await this.#releaseUnsent(this.#holds.takeReady(work.webhookId))
      return await this.#endWaiting(work)
    }
    const hold = this.#holds.holdOf(work)
    this.#noteFailureCount(work.webhookId, work.failureCount)
    if (work.hasDue) await this.#claim(work, hold)
    if (work.headSeq > work.seenSeq) await this.#fanOut(work, hold)
  }

  async #claim(work: WebhookWork, hold: Hold): Promise<void> {
    const room = this.#holds.roomFor(hold)
    if (room.count === 0) return
    const { workspaceId, webhookId } = work
    const lease = this.#newLease()
    const { db } = this.#options
    using _reserved = this.#holds.reserve(hold, room)
    const { isProbing: isProbe } = hold.lane
    const target = { workspaceId, webhookId, isProbe }
    const leased = await claimDue(db, { ...target, room, lease, now: this.#now() })
    this.#accept(leased, work, hold, lease)
  }

  /**
   * Creates as many deliveries as can be sent now: an event that waits in the ledger costs nothing, but a
   * delivery that waits is written twice. Without room, it creates deliveries only from time to time, so that
   * users see what is waiting.
   */
  async #fanOut(work: WebhookWork, hold: Hold): Promise<void> {
    const { eventsPerFanOutMax, openPerWebhookMax } = this.#limits
    const room = this.#holds.roomFor(hold)
    const nowMs = this.#options.clock()
    if (room.count === 0 && Math.abs(nowMs - hold.fannedOutAtMs) < idleFanOutMs(this.#limits, work))
      return
    hold.fannedOutAtMs = nowMs
    // Few of the workspace's events may be selected, so it scans a full page, which yields few deliveries.
    const isSparse =
      work.projectId !== null || work.filter !== null || work.seenSeq < work.projectSinceSeq
    const count = Math.min(
      isSparse ? eventsPerFanOutMax : room.count || idleFanOutCount(this.#limits, work),
      openPerWebhookMax - work.openCount,
      work.headSeq - work.seenSeq,
    )
    if (count <= 0) return
    const lease = this.#newLease()
    const toSeq = work.seenSeq + count
    const { db } = this.#options
    using _reserved = this.#holds.reserve(hold, room)
    const leased = await fanOut(db, { webhook: work, toSeq, room, lease, now: this.#now() })
    this.#accept(leased ?? [], work, hold, lease)
    if (work.headSeq > toSeq && hold.lane.room() > 0) this.#startRound()
  }

  #accept(leased: readonly LeasedWork[], work: WebhookWork, hold: Hold, lease: Lease): void {
    if (leased.length === 0) return
    this.#order.noteLeased(work)
    const { box, clock, logger } = this.#options
    const nowMs = clock()
    const { webhookId } = work
    const credentials = openCredentials(work, webhookId, { box, nowMs })
    const isReadable = credentials.signer && credentials.extraHeaders
    if (!isReadable) this.#unreadable.warn(logger, { webhookId, deliveries: leased.length })
    const about = { work, lease, readyAtMs: nowMs, lane: hold.lane }
    const ready = this.#holds.charge(hold, () =>
      leased.map((one) => ({ ...readyDelivery(one, work, credentials), ...about })),
    )
    void this.#releaseUnsent(this.#holds.add(webhookId, hold, targetAt(work, nowMs), ready))
  }

  /** Repeated while the nodes are dead: a claim of theirs can still have been on its way the first time. */
  async #takeOver(nodeIds: readonly string[]): Promise<void> {
    const { db, logger } = this.#options
    const { leaseMs } = this.#limits
    const deliveries = await takeOverLeases(db, { nodeIds, now: this.#now(), leaseMs })
    if (deliveries === 0) return
    logger.warn({ event: 'lease.taken-over', deliveries })
    this.wake()
  }

  async #send(delivery: Held): Promise<void> {
    const isStale = this.#options.clock() - delivery.readyAtMs > this.#limits.readyMsMax
    const { presence } = this.#options
    const isLost = presence?.hasLeases === false || presence?.leaseEpoch !== delivery.lease.epoch
    if (isStale || isLost) {
      this.#release(delivery, { isGood: false, durationMs: 0 })
      void this.#releaseUnsent([delivery])
      return
    }
    this.#sending.add(delivery)
    const { settlement, outcome, isCanceled } = await runAttempt(delivery, {
      ...this.#options,
      charge: (work) => this.#holds.charge(delivery.work, work),
    })
    if (this.#isOver) return
    if (isCanceled) {
      this.#sending.delete(delivery)
      this.#canceled.push(delivery)
      return
    }
    reportAttempt(settlement, this.#options)
    if (outcome && disablesWebhook(outcome)) {
      // Only if the URL hasn't changed meanwhile: the 410 is about this URL.
      const { url } = delivery.work
      await this.#disable(delivery.work, 'The receiver responded with 410 Gone.', url)
    }
    const isWritten = this.#settleQueue.add(settlement)
    this.#sending.delete(delivery)
    const isGood = settlement.status === 'SUCCEEDED'
    // A failure keeps its slot until it is counted, because it may be the one that pauses the webhook.
    if (!isGood) await isWritten
    this.#release(delivery, { isGood, durationMs: settlement.record.durationMs })
  }

  #release(delivery: Held, end: { isGood: boolean; durationMs: number }): void {
    if (this.#holds.noteEnd(delivery, end)) this.#startRound()
  }

  #noteFailureCount(webhookId: WebhookId, failureCount: number): void {
    void this.#releaseUnsent(this.#holds.noteFailureCount(webhookId, failureCount))
  }

  #onSettled(webhooks: readonly SettledWebhook[]): void {
    const failingBeforeMs = this.#options.clock() - this.#limits.failingMsMax
    for (const { workspaceId, webhookId, failingSince, failureCount } of webhooks) {
      this.#noteFailureCount(webhookId, failureCount)
      if (failingSince === null || failingSince.getTime() > failingBeforeMs) continue
      void this.#disable({ workspaceId, webhookId }, 'No delivery succeeded for five days.')
    }
  }

  async #disable(
    { workspaceId, webhookId }: Pick<WebhookWork, 'workspaceId' | 'webhookId'>,
    reason: string,
    url?: string,
  ): Promise<void> {
    const { db, logger, audit } = this.#options
    try {
      const webhook = { workspaceId, id: webhookId }
      const change = { reason, now: this.#now(), ...(url !== undefined && { url }) }
      const isChanged = await db.transaction().execute(async (trx) => {
        const disabled = await markWebhookDisabled(trx, webhook, change)
        if (!disabled) return false
        const metadata = { reason, url: disabled.url }
        const resource = webhookResource(webhook)
        const notice = disabledNotice({ ...webhook, ...disabled }, change)
        await raiseNotices(trx, [notice], change.now.getTime())
        await audit(trx, disabled.companyId, [{ action: 'WEBHOOK_DISABLED', resource, metadata }])
        return true
      })
      if (isChanged) logger.info({ event: 'webhook.disabled', webhookId, reason })
      this.wake()
    } catch (error) {
      logger.warn({ event: 'webhook.not-disabled', webhookId, err: error })
    }
  }

  async #endWaiting({ workspaceId, webhookId, disabledReason }: WebhookWork): Promise<void> {
    const limit = this.#limits.endedPerStatementMax
    const reason = disabledReason ?? 'The webhook was disabled.'
    const where = { workspaceId, webhookId, reason, limit, now: this.#now() }
    if ((await failWaiting(this.#options.db, where)) === limit) this.#startRound()
  }

  #newLease(): Lease {
    const { clock, presence } = this.#options
    const token = presence ? leaseToken(presence.id) : newId()
    const until = new Date(clock() + this.#limits.leaseMs)
    return { token, until, epoch: presence?.leaseEpoch }
  }

  #now(): Date {
    return new Date(this.#options.clock())
  }

  /**
   * Gives requests that are being sent some time to finish, and releases the leases of all other deliveries.
   * Those that still wait for a name server or a connection have not reached their receiver yet.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const endsAtMs = performance.now() + this.#limits.stopMsMax
    this.#stop.abort()
    this.#settleQueue.close()
    this.#startRound()
    await this.#loop
    const ready = this.#holds.takeAll()
    this.#options.sender.cancelUnsent()
    while (this.#sending.size > 0 && performance.now() < endsAtMs) {
      await delay(this.#limits.gatherMs)
    }
    this.#isOver = true
    await this.#settleQueue[Symbol.asyncDispose]()
    await this.#releaseUnsent([...ready, ...this.#canceled, ...this.#sending])
  }

  async #releaseUnsent(unsent: readonly Held[]): Promise<void> {
    if (unsent.length === 0) return
    const { db, logger } = this.#options
    const leased = unsent.map(({ work, delivery, lease }) => ({
      workspaceId: work.workspaceId,
      webhookId: work.webhookId,
      deliveryId: delivery.id,
      sequence: delivery.sequence,
      lease: lease.token,
    }))
    try {
      await releaseLeases(db, leased, this.#now())
    } catch (error) {
      logger.warn({ event: 'lease.kept', deliveries: unsent.length, err: error })
    }
  }
}
