import { setTimeout as delay } from 'node:timers/promises'
import { checkReply, pause, type SoakContext } from './soak-context.ts'
import type { Workspace } from './world.ts'

const SINGLE_CLIENTS = 8
const BATCH_CLIENTS = 2
const BATCH_EVENTS = 25
const BATCH_SHARE = 0.5
const UNKEYED_SHARE = 0.1
const REPLAY_SHARE = 0.1
/** Only recent keys are replayed. */
const REPLAY_DISTANCE_MAX = 20_000
const RETRY_PAUSE_MS = 100
/** How long after the load an event can still be refused. */
const LAST_TRIES_MS_MAX = 30_000

/** Clients that send events one by one and in batches, at a steady rate, until the load ends. */
export async function sendEvents(soak: SoakContext, eventsPerSecond: number): Promise<void> {
  const singleMs = (1_000 * SINGLE_CLIENTS) / (eventsPerSecond * (1 - BATCH_SHARE))
  const batchMs = (1_000 * BATCH_CLIENTS * BATCH_EVENTS) / (eventsPerSecond * BATCH_SHARE)
  await Promise.all([
    ...Array.from({ length: SINGLE_CLIENTS }, () => repeat(soak, singleMs, sendOne)),
    ...Array.from({ length: BATCH_CLIENTS }, () => repeat(soak, batchMs, sendBatch)),
  ])
}

async function repeat(
  soak: SoakContext,
  everyMs: number,
  send: (soak: SoakContext) => Promise<void>,
): Promise<void> {
  while (!soak.stopping.aborted && !soak.book.isFull) {
    const startedAtMs = performance.now()
    await send(soak)
    await pause(soak, Math.max(0, everyMs - (performance.now() - startedAtMs)))
  }
}

async function sendOne(soak: SoakContext): Promise<void> {
  const { book, http, random, recovery, world } = soak
  const workspace = random.pick(world.workspaces)
  const isKeyed = !random.chance(UNKEYED_SHARE)
  const n = book.add(workspace.index, { isKeyed })
  const mayRetry = retryWindow(soak)
  for (let attempt = 1; ; attempt += 1) {
    const requestedAtMs = performance.now()
    const body = book.bodyOf(n)
    const reply = await http.send('POST', '/v1/events', { key: workspace.key, body })
    checkReply(soak, 'ingest', reply, [200, 201, 503])
    if (reply.status === 201 || reply.status === 200) {
      recovery.accepted(requestedAtMs)
      accept(soak, n, { id: reply.json.id, status: reply.status, isFirst: attempt === 1 })
      break
    }
    // Without an idempotency key, a retry could store the event twice.
    if (!isKeyed || !mayRetry()) return
    await delay(RETRY_PAUSE_MS)
  }
  if (random.chance(REPLAY_SHARE)) await replayOne(soak)
}

async function sendBatch(soak: SoakContext): Promise<void> {
  const { book, http, random, recovery, tally, world } = soak
  const workspace = random.pick(world.workspaces)
  let open = Array.from({ length: BATCH_EVENTS }, () =>
    book.add(workspace.index, { isKeyed: true }),
  )
  const mayRetry = retryWindow(soak)
  for (let attempt = 1; ; attempt += 1) {
    const requestedAtMs = performance.now()
    const body = { events: open.map((n) => book.bodyOf(n)) }
    const reply = await http.send('POST', '/v1/events/batch', { key: workspace.key, body })
    checkReply(soak, 'ingest batch', reply, [200, 503])
    if (reply.status === 200) {
      const results: { id?: string; status: number }[] = reply.json.results
      open.forEach((n, nth) => {
        const { id = '', status = 0 } = results[nth] ?? {}
        accept(soak, n, { id, status, isFirst: attempt === 1 })
      })
      tally.count('ingest batch', 'events', results.length)
      recovery.accepted(requestedAtMs)
      return
    }
    open = open.filter((n) => !book.isAcknowledged(n))
    if (!mayRetry()) return
    await delay(RETRY_PAUSE_MS)
  }
}

function accept(
  { book, verdicts }: SoakContext,
  n: number,
  { id, status, isFirst }: { id: string; status: number; isFirst: boolean },
): void {
  const isFit = status === 201 || (status === 200 && !isFirst)
  if (!verdicts.check('ledger', isFit, () => `event ${n} returned ${status}`)) return
  const isKnown = book.acknowledge(n, id)
  verdicts.check('replays', isKnown, () => `event ${n} has the ids ${book.idOf(n)} and ${id}`)
}

/** Replays an acknowledged event, like a client whose connection broke before the response. */
async function replayOne(soak: SoakContext): Promise<void> {
  const { book, http, random, verdicts, world } = soak
  const n = book.count - 1 - random.below(Math.min(book.count, REPLAY_DISTANCE_MAX))
  const workspace: Workspace | undefined = world.workspaces[book.workspaceOf(n)]
  if (!workspace || !book.isKeyed(n) || !book.isAcknowledged(n)) return
  const body = book.bodyOf(n)
  const reply = await http.send('POST', '/v1/events', { key: workspace.key, body })
  checkReply(soak, 'ingest replay', reply, [200, 503])
  if (reply.status !== 200) return
  const isSame =
    reply.json.id === book.idOf(n) &&
    reply.headers['x-idempotent-replay'] === 'true' &&
    reply.headers['x-idempotency-mismatch'] === undefined
  const describe = () => `event ${n} (${book.idOf(n)}) was replayed as ${reply.text}`
  verdicts.check('replays', isSame, describe)
}

/** True while a refused event should be retried. */
function retryWindow({ stopping, verdicts }: SoakContext): () => boolean {
  let stoppedAtMs: number | null = null
  return () => {
    if (!stopping.aborted) return true
    stoppedAtMs ??= performance.now()
    const isOpen = performance.now() - stoppedAtMs < LAST_TRIES_MS_MAX
    return verdicts.check('recovery', isOpen, () => 'an event was refused until the very end')
  }
}
