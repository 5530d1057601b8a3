import { setTimeout as delay } from 'node:timers/promises'
import type { Annals } from '../../../../../sdk/src/annals.ts'
import { AnnalsApiError } from '../../../../../sdk/src/client/errors.ts'
import { retryWaitMs } from '../../../../../sdk/src/client/retry.ts'
import type { Event } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { EVENT_TABLE } from './event-columns.ts'
import { eventMatcher } from '../event-filters.ts'
import { explainClientError } from '../client-error.ts'
import { findWorkspace } from '../find-workspace.ts'
import type { ClientCommand } from '../run-client.ts'

/** From the fourth attempt on, the pauses get no longer: new events should appear soon after an outage. */
const BACKOFF_ATTEMPTS_MAX = 4

const ENDLESS =
  'The feed accepts any position, so this is not an Annals service. Check ANNALS_API_URL.'

export type TailOptions = { filter: string[]; last: number; after?: number; workspace?: string }

/** `annals events tail`: prints new events until Ctrl-C, without gaps or duplicates. */
export async function tailEvents(
  { annals, output, signal, target }: ClientCommand,
  { filter, last, after, workspace }: TailOptions,
): Promise<void> {
  const matches = eventMatcher(filter)
  const workspaceId = await findWorkspace(annals, workspace, signal)
  const print = output.rows(EVENT_TABLE)
  const start = after ?? Math.max(0, (await findLastSeq(annals, workspaceId, signal)) - last)
  output.note(`Following the log after seq ${start}. Press Ctrl-C to stop.`)
  await follow({
    annals,
    workspaceId,
    after: start,
    signal,
    show: (events) => print(events.filter(matches)),
    onOutage: (error) => {
      const reason = explainClientError(error, target)
      const sentence = reason instanceof Error ? reason.message : String(reason)
      output.note(`annals: ${sentence} Retrying until the service responds.`)
    },
    onRecovery: () => output.note('annals: Connected again.'),
  })
}

type Follow = {
  annals: Annals
  workspaceId: string
  after: number
  signal: AbortSignal
  show: (events: readonly Event[]) => Promise<void>
  onOutage: (error: unknown) => void
  onRecovery: () => void
}

/** Reads the feed until the signal aborts. After an outage, continues after the last event that was shown. */
async function follow({
  annals,
  signal,
  show,
  onOutage,
  onRecovery,
  ...position
}: Follow): Promise<never> {
  let failures = 0
  for (;;) {
    try {
      // The first loop ends at the last event, so an outage is over when it does, even without new events.
      for (const isWaiting of [false, true]) {
        const feed = annals.events.feed({ ...position, follow: isWaiting, signal, retriesMax: 0 })
        for await (const { data, next } of feed.pages()) {
          await show(data)
          position.after = next
        }
        if (failures > 0) onRecovery()
        failures = 0
      }
    } catch (error) {
      signal.throwIfAborted()
      failures += 1
      const waitMs = retryWaitMs(error, {
        attempt: Math.min(failures, BACKOFF_ATTEMPTS_MAX),
        retriesMax: Infinity,
        retryAfterMsMax: Infinity,
        retryPolicy: 'safe',
        random: () => 1,
      })
      if (waitMs === null) throw error
      if (failures === 1) onOutage(error)
      await delay(waitMs, undefined, { signal })
    }
  }
}

/** Searches for the number of the last event, from the newest checkpoint on, which is a few seconds old. */
async function findLastSeq(
  annals: Annals,
  workspaceId: string,
  signal: AbortSignal,
): Promise<number> {
  const isBeyondEnd = (after: number) => refuses(annals, { workspaceId, after, signal })
  let low = await signedSize(annals, workspaceId, signal)
  let high = low + 1
  for (let step = 2; !(await isBeyondEnd(high)); step *= 2) {
    low = high
    high += step
    // Beyond it, a server that refuses no position would be asked forever.
    if (!(high <= Number.MAX_SAFE_INTEGER)) throw new OperatorError(ENDLESS)
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (await isBeyondEnd(middle)) high = middle
    else low = middle
  }
  return low
}

async function signedSize(
  annals: Annals,
  workspaceId: string,
  signal: AbortSignal,
): Promise<number> {
  try {
    return (await annals.proofs.checkpoint(workspaceId, { signal })).size
  } catch (error) {
    // Nothing is signed yet, or the service has no archive.
    if (error instanceof AnnalsApiError && error.status === 409) return 0
    throw error
  }
}

/** Whether the feed refuses a position because it is beyond the last event. */
async function refuses(
  annals: Annals,
  position: { workspaceId: string; after: number; signal: AbortSignal },
): Promise<boolean> {
  try {
    await annals.events
      .feed({ ...position, limit: 1 })
      .pages()
      .next()
    return false
  } catch (error) {
    if (!(error instanceof AnnalsApiError)) throw error
    // The next event exists, but it is archived.
    if (error.code === 'plan_required' || error.code === 'archive_restoring') return false
    if (error.status === 400 && error.details.some(({ path }) => path === 'after')) return true
    throw error
  }
}
