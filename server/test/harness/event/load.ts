import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually, TurnClock } from '../timing/eventually.ts'

/** A workspace that the load writes to. */
export type Target = { id: string; workspaceKey: string }

/** One attempt to send an event. Status null: the connection broke, so the outcome is unknown. */
export type Attempt = {
  status: number | null
  id: string | null
  retryAfter: string | null
  /** By a `TurnClock`. */
  durationMs: number
}

/** One event, whose idempotency key is the same in every attempt. */
export type SentEvent = { key: string; workspaceId: string; attempts: Attempt[] }

type LoadOptions = {
  /** Called before each request, because a restarted service may listen on another port. */
  url: (client: number) => string
  targets: readonly Target[]
  clients?: number
}

const CLIENTS = 24
/** Far above what any response may take. After that, the request counts as broken. */
const REQUEST_MS_MAX = 30_000
/** A refused client retries soon, so that many requests meet the outage. */
const REFUSED_PAUSE_MS = 20
/** After a broken connection. A service takes seconds to start, and each of these events is retried. */
const BROKEN_PAUSE_MS = 100

/**
 * A closed loop of clients, each with one event at a time in flight and a fresh idempotency key for
 * every event. It runs until it is stopped and records every attempt with its response.
 */
export class Load implements AsyncDisposable {
  readonly events: SentEvent[] = []
  readonly #options: LoadOptions
  readonly #keyOf: ReadonlyMap<string, string>
  readonly #agent = new Agent({ keepAlive: true })
  readonly #clock = new TurnClock()
  readonly #clients: Promise<void[]>
  #isStopping = false
  #acknowledged = 0
  #failed = 0

  constructor(options: LoadOptions) {
    this.#options = options
    this.#keyOf = new Map(options.targets.map(({ id, workspaceKey }) => [id, workspaceKey]))
    const count = options.clients ?? CLIENTS
    this.#clients = Promise.all(Array.from({ length: count }, (_, index) => this.#drive(index)))
  }

  /** Every attempt so far. */
  get attempts(): Attempt[] {
    return this.events.flatMap((event) => event.attempts)
  }

  /** How many attempts got a response other than 200 or 201, or none. */
  get failed(): number {
    return this.#failed
  }

  /** How many attempts got a 200 or 201. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  /** Resolves under load: when this many more events have been acknowledged. */
  async waitForProgress(count = 150): Promise<void> {
    const enough = this.#acknowledged + count
    await eventually(() => {
      if (this.#acknowledged < enough) throw new Error(`no flow: ${this.describe()}`)
    })
  }

  /** Resolves when there are more than `before` failures. */
  async waitForFailures(before: number): Promise<void> {
    await eventually(() => {
      if (this.#failed <= before) throw new Error(`no request failed: ${this.describe()}`)
    })
  }

  /** Lets every client finish its request. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#clients
  }

  /** Retries every unacknowledged event with its key, as a client must, until it is accepted. */
  async settle(): Promise<void> {
    const open = this.events.filter((event) => !isAcknowledged(event))
    const resend = async (client: number): Promise<void> => {
      for (let event = open.pop(); event; event = open.pop()) await this.#resend(event, client)
    }
    await Promise.all(Array.from({ length: CLIENTS }, (_, index) => resend(index)))
  }

  /** Counts by status, shown when a test fails. */
  describe(): string {
    const counts = new Map<string, number>()
    for (const { status } of this.attempts) {
      const name = status === null ? 'broken' : String(status)
      counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    return JSON.stringify(Object.fromEntries(counts))
  }

  async #drive(client: number): Promise<void> {
    for (let nth = client; !this.#isStopping; nth += 1) {
      const target = this.#options.targets[nth % this.#options.targets.length]
      const event: SentEvent = { key: randomUUID(), workspaceId: target?.id ?? '', attempts: [] }
      this.events.push(event)
      await this.#send(event, client)
      if (isAcknowledged(event)) continue
      await delay(event.attempts.at(-1)?.status === null ? BROKEN_PAUSE_MS : REFUSED_PAUSE_MS)
    }
  }

  async #resend(event: SentEvent, client: number): Promise<void> {
    await eventually(async () => {
      await this.#send(event, client)
      const last = event.attempts.at(-1)
      if (!isAcknowledged(event)) throw new Error(`not accepted on retry: ${JSON.stringify(last)}`)
    })
  }

  async #send(event: SentEvent, client: number): Promise<void> {
    const body = JSON.stringify({
      category: 'fault',
      action: 'fault.met',
      actor: { id: `client_${client}` },
      // Also in the body, so that a stored event can be matched to its request.
      metadata: { request: event.key },
      idempotencyKey: event.key,
    })
    const startedAtMs = this.#clock.ms
    const response = await this.#post(this.#options.url(client), event.workspaceId, body)
    const attempt = { ...response, durationMs: this.#clock.ms - startedAtMs }
    event.attempts.push(attempt)
    if (isAccepted(attempt)) this.#acknowledged += 1
    else this.#failed += 1
  }

  #post(
    url: string,
    workspaceId: string,
    body: string,
  ): Promise<Pick<Attempt, 'status' | 'id' | 'retryAfter'>> {
    const broken = { status: null, id: null, retryAfter: null }
    return new Promise((resolve) => {
      const request = httpRequest(`${url}/v1/events`, {
        method: 'POST',
        agent: this.#agent,
        signal: AbortSignal.timeout(REQUEST_MS_MAX),
        headers: {
          authorization: `Bearer ${this.#keyOf.get(workspaceId)}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      })
      request.on('error', () => resolve(broken))
      request.on('response', (response) => {
        readResponse(response).then(resolve, () => resolve(broken))
      })
      request.end(body)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    this.#agent.destroy()
    this.#clock[Symbol.dispose]()
  }
}

/** A second, plus a margin for a busy machine with two cores. */
const RESPONSE_MS_MAX = 1_500

/** The service stayed up: each attempt got a response in time, and each 503 a `Retry-After`. */
export function assertPromptResponses(load: Load): void {
  for (const attempt of load.attempts) {
    const { status, retryAfter, durationMs } = attempt
    assert(durationMs < RESPONSE_MS_MAX, `${status} took ${Math.round(durationMs)} ms`)
    if (isAccepted(attempt)) continue
    assert.equal(status, 503)
    assert.match(retryAfter ?? '', /^[1-9]\d*$/)
  }
}

export function isAccepted({ status }: Attempt): boolean {
  return status === 200 || status === 201
}

export function isAcknowledged({ attempts }: SentEvent): boolean {
  return attempts.some(isAccepted)
}

async function readResponse(response: IncomingMessage) {
  const body: { id?: string } = JSON.parse(await text(response))
  return {
    status: response.statusCode ?? null,
    id: body.id ?? null,
    retryAfter: response.headers['retry-after'] ?? null,
  }
}
