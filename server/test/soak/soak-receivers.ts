import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import {
  hang,
  type ReceivedRequest,
  type Receiver,
  type Reply,
  reset,
  startReceiver,
} from '../harness/webhook/receiver.ts'
import type { HttpClient } from './http-client.ts'
import type { SentEvents } from './sent-events.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { Tally } from './tally.ts'
import type { Verdicts } from './verdicts.ts'
import type { Workspace, World } from './world.ts'

type Behavior = 'fast' | 'slow' | 'failing' | 'hanging'
/** `stalled` while a fault slows all receivers, `draining` when all accept immediately. */
type Mode = 'normal' | 'stalled' | 'draining'

/** The receivers of each workspace, by index. The other workspaces have no webhook. */
const PLAN: readonly { workspaceIndex: number; behavior: Behavior }[] = [
  { workspaceIndex: 0, behavior: 'fast' },
  { workspaceIndex: 0, behavior: 'slow' },
  { workspaceIndex: 1, behavior: 'failing' },
  { workspaceIndex: 4, behavior: 'fast' },
  { workspaceIndex: 5, behavior: 'hanging' },
]
const SLOW_MS_MAX = 400
const STALLED_MS = 3_000
const DELIVERIES_MAX = 2_000_000

/** A webhook and the deliveries that its receiver got. */
export type SoakWebhook = {
  id: string
  workspace: Workspace
  behavior: Behavior
  /**
   * By event number: 0 if the event has not arrived, else the last bits of its delivery id. These bits
   * are random, so two deliveries of one event would differ.
   */
  arrivals: Uint32Array
}

type ReceiverDeps = {
  http: HttpClient
  world: World
  book: SentEvents
  tally: Tally
  verdicts: Verdicts
  random: SeededRandom
}

/** The webhooks with their receivers: fast, slow, failing and hanging ones. */
export class SoakReceivers implements AsyncDisposable {
  readonly webhooks: SoakWebhook[] = []
  readonly #receivers: Receiver[] = []
  readonly #deps: ReceiverDeps
  #mode: Mode = 'normal'

  private constructor(deps: ReceiverDeps) {
    this.#deps = deps
  }

  static async start(deps: ReceiverDeps): Promise<SoakReceivers> {
    await using stack = new AsyncDisposableStack()
    const receivers = stack.use(new SoakReceivers(deps))
    for (const { workspaceIndex, behavior } of PLAN) await receivers.#add(workspaceIndex, behavior)
    stack.move()
    return receivers
  }

  set mode(mode: Mode) {
    this.#mode = mode
  }

  /** Makes every receiver accept immediately. Closes hanging requests, so that they are retried. */
  drain(): void {
    this.mode = 'draining'
    for (const receiver of this.#receivers) receiver.cutAll()
  }

  async #add(workspaceIndex: number, behavior: Behavior): Promise<void> {
    const { http, random, tally, world } = this.#deps
    const receiver = await startReceiver({}, { requestsKeptMax: 0 })
    this.#receivers.push(receiver)
    const workspace = world.workspaces[workspaceIndex]
    assert(workspace)
    const { id, secret } = await createWebhook(http, workspace, receiver.url)
    const webhook = { id, workspace, behavior, arrivals: new Uint32Array(DELIVERIES_MAX) }
    this.webhooks.push(webhook)
    receiver.respondWith((request) => {
      const reply = chooseReply(this.#mode, behavior, random)
      if (isAcceptance(reply)) recordArrival(this.#deps, webhook, secret, request)
      tally.count('delivery', isAcceptance(reply) ? 'accepted' : 'refused')
      return reply
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const receiver of this.#receivers) await receiver[Symbol.asyncDispose]()
  }
}

async function createWebhook(http: HttpClient, workspace: Workspace, url: string) {
  const reply = await http.send('POST', `/v1/workspaces/${workspace.id}/webhooks`, {
    key: workspace.companyKey,
    body: { url },
  })
  assert.equal(reply.status, 201, reply.text)
  const { id, secret }: { id: string; secret: string } = reply.json
  return { id, secret }
}

const BEHAVIORS: Record<Behavior, (random: SeededRandom) => Reply> = {
  fast: () => ({}),
  slow: (random) => ({ afterMs: random.below(SLOW_MS_MAX) }),
  failing: (random) => {
    if (random.chance(0.05)) return reset
    return random.chance(0.25) ? { status: random.pick([500, 502, 429, 404]) } : {}
  },
  hanging: (random) => (random.chance(0.8) ? hang : {}),
}

function chooseReply(mode: Mode, behavior: Behavior, random: SeededRandom): Reply {
  if (mode === 'draining') return {}
  return mode === 'stalled' ? { afterMs: STALLED_MS } : BEHAVIORS[behavior](random)
}

function isAcceptance(reply: Reply): boolean {
  return !('misbehave' in reply) && reply.status === undefined
}

function recordArrival(
  { book, tally, verdicts }: ReceiverDeps,
  { workspace, arrivals }: SoakWebhook,
  secret: string,
  { body, headers }: ReceivedRequest,
): void {
  const signature = `v1=${createHmac('sha256', secret).update(body).digest('hex')}`
  const isSigned = headers['x-service-signature'] === signature
  verdicts.check('signatures', isSigned, () => `a bad signature: ${JSON.stringify(headers)}`)
  const event: { id: string; workspaceId: string; metadata?: { n?: unknown } } = JSON.parse(
    body.toString(),
  )
  const n = event.metadata?.n
  const isOurs = event.workspaceId === workspace.id && book.has(n, workspace.index)
  if (!verdicts.check('deliveries', isOurs, () => `delivered but never sent: ${event.id}`)) return
  if (!book.has(n, workspace.index)) return
  const deliveryId = headers['x-service-delivery-id'] ?? ''
  const end = deliveryIdEnd(deliveryId)
  const known = arrivals[n] ?? 0
  if (known !== 0) tally.count('delivery', 'repeated')
  const describe = () => `event ${event.id} came again with another delivery id, ${deliveryId}`
  verdicts.check('deliveries', known === 0 || known === end, describe)
  arrivals[n] = end
}

/** The last 32 bits; never 0. */
export function deliveryIdEnd(deliveryId: string): number {
  return Number.parseInt(deliveryId.slice(-8), 16) || 1
}
