import type { Metrics } from '../../platform/metrics.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { PLAN_TERMS, PLANS } from '../../tenancy/plans.ts'
import {
  listPlanGauges,
  listWebhookGauges,
  listWorkerLags,
  readStorageGauges,
  WEBHOOK_GAUGE_STATES,
} from './telemetry-store.ts'

/** Gauges that one statement reads. */
export type GaugeGroup = {
  name: string
  /** Sets all gauges of the group, or none. */
  read: (db: Queryable) => Promise<void>
  /** Leaves the gauges out of the next scrapes. */
  clear: () => void
}

/** All gauges that are read from the database. */
export function gaugeGroups(
  metrics: Metrics,
  { isSigning }: { isSigning: boolean },
): readonly GaugeGroup[] {
  return [
    webhookGroup(metrics),
    workerGroup(metrics, isSigning),
    storageGroup(metrics),
    planGroup(metrics),
  ]
}

/** A state that has no webhook is 0. Without it, its last value would look current. */
function webhookGroup({
  webhooks,
  webhookEventsUnread,
  deliveriesOpen,
  deliveryLateSeconds,
}: Metrics): GaugeGroup {
  return {
    name: 'webhooks',
    read: async (db) => {
      const found = new Map((await listWebhookGauges(db)).map((row) => [row.state, row]))
      for (const state of WEBHOOK_GAUGE_STATES) {
        const row = found.get(state)
        webhooks.set({ state }, row?.webhooks ?? 0)
        webhookEventsUnread.set({ state }, row?.unread ?? 0)
        deliveriesOpen.set({ state }, row?.open ?? 0)
        deliveryLateSeconds.set({ state }, row?.lateSeconds ?? 0)
      }
    },
    clear: () => {
      for (const gauge of [webhooks, webhookEventsUnread, deliveriesOpen, deliveryLateSeconds]) {
        gauge.reset()
      }
    },
  }
}

function workerGroup(
  { workerLagEvents, workerLagSeconds }: Metrics,
  isSigning: boolean,
): GaugeGroup {
  return {
    name: 'workers',
    read: async (db) => {
      for (const { worker, events, seconds } of await listWorkerLags(db, { isSigning })) {
        workerLagEvents.set({ worker }, events)
        workerLagSeconds.set({ worker }, seconds)
      }
    },
    clear: () => {
      workerLagEvents.reset()
      workerLagSeconds.reset()
    },
  }
}

function storageGroup({ databaseBytes, exportsOpen }: Metrics): GaugeGroup {
  return {
    name: 'storage',
    read: async (db) => {
      const read = await readStorageGauges(db)
      databaseBytes.set(read.databaseBytes)
      exportsOpen.set({ status: 'pending' }, read.pending)
      exportsOpen.set({ status: 'running' }, read.running)
    },
    clear: () => {
      databaseBytes.remove()
      exportsOpen.reset()
    },
  }
}

function planGroup({ companies, planUse }: Metrics): GaugeGroup {
  return {
    name: 'plans',
    read: async (db) => {
      const found = new Map((await listPlanGauges(db)).map((row) => [row.plan, row]))
      for (const plan of PLANS) {
        const row = found.get(plan)
        const { bytesPerDayMax } = PLAN_TERMS[plan]
        companies.set({ plan }, row?.companies ?? 0)
        if (bytesPerDayMax === null) continue
        planUse.set({ plan }, (row?.bytesOfLargest ?? 0) / bytesPerDayMax)
      }
    },
    clear: () => {
      companies.reset()
      planUse.reset()
    },
  }
}
