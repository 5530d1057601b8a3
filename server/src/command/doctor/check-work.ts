import { archiveUrlOf } from '../../archive-url-of.ts'
import { listWebhookGauges, listWorkerLags } from '../../outlet/telemetry/telemetry-store.ts'
import { type Finding, finding, type OpenLedger } from './check.ts'
import { listRefusals } from './doctor-store.ts'

const REFUSALS_SHOWN_MAX = 5
/** Like the alerts AnnalsEventsUnsigned and AnnalsDeliveriesLate. */
const UNSIGNED_SECONDS_MAX = 60
const LATE_SECONDS_MAX = 300

export async function checkCheckpoints({ config, database }: OpenLedger): Promise<Finding> {
  if (archiveUrlOf(config) === null) return finding.ok('Without an archive, nothing is signed.')
  const refusals = await listRefusals(database.db, { limit: REFUSALS_SHOWN_MAX })
  const [first] = refusals
  if (first) {
    const ids = refusals.map(({ workspaceId }) => workspaceId).join(', ')
    return finding.failed(
      `The signer refuses to sign ${ids}: ${first.refusal}`,
      `Run: annals ledger-fork --workspace ${first.workspaceId}`,
    )
  }
  const lags = await listWorkerLags(database.db, { isSigning: true })
  const { events = 0, seconds = 0 } = lags.find(({ worker }) => worker === 'signer') ?? {}
  if (events === 0) return finding.ok('All events are signed.')
  const text = `${events} events are not signed yet, the oldest for ${Math.round(seconds)} s.`
  if (seconds <= Math.max(UNSIGNED_SECONDS_MAX, 2 * config.checkpointSeconds)) {
    return finding.ok(text)
  }
  return finding.warning(
    text,
    'If no node is running, start one. Otherwise, follow "Events are not signed" in docs/operations.md.',
  )
}

export async function checkWebhooks({ database }: OpenLedger): Promise<Finding> {
  const gauges = await listWebhookGauges(database.db)
  const count = (state: string) => gauges.find((gauge) => gauge.state === state)?.webhooks ?? 0
  const [failing, healthy] = [count('failing') + count('resting'), count('healthy')]
  const text = `${healthy} webhooks deliver, ${failing} fail, and ${count('disabled')} are disabled.`
  if (failing === 0) return finding.ok(text)
  return finding.warning(
    text,
    'To find them, run: annals company show --company ID. The dashboard shows the response of each attempt.',
  )
}

/** Deliveries to webhooks that fail are late because of their receivers, which is the check above. */
export async function checkDeliveries({ database }: OpenLedger): Promise<Finding> {
  const gauges = await listWebhookGauges(database.db)
  const healthy = gauges.find(({ state }) => state === 'healthy')
  const waiting = (healthy?.open ?? 0) + (healthy?.unread ?? 0)
  if (waiting === 0) return finding.ok('Nothing waits to be delivered.')
  const seconds = Math.round(healthy?.lateSeconds ?? 0)
  const text = `At most ${waiting} deliveries wait, the oldest for ${seconds} s.`
  if (seconds <= LATE_SECONDS_MAX) return finding.ok(text)
  return finding.warning(
    text,
    'If no node does background work, start one. Otherwise, see "Late background work" in docs/operations.md.',
  )
}
