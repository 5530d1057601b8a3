import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { type Service, startProgram } from '../lib/service.ts'

const POLL_MS = 100
/** Longer than the first retry takes. Events that haven't arrived by then are lost. */
const STALL_MS_MAX = 30_000

export type Behavior = 'ok' | 'hang' | 'reset' | 'fail' | 'drip'

/** What arrived under one name. Times are of the machine clock. */
export type Summary = {
  requests: number
  events: number
  duplicates: number
  sequenceGaps: number
  firstAtMs: number
  lastAtMs: number
}

export type Receiver = AsyncDisposable & {
  pid: number
  /** The URL of a webhook. The service treats URLs with the same `nth` as one receiver. */
  urlOf: (name: string, options?: { behavior?: Behavior; nth?: number }) => string
  summarize: (name: string) => Promise<Summary>
  /** When the first byte of each event arrived. */
  arrivals: (name: string) => Promise<Map<string, number>>
  /** The first delivery, as it arrived. */
  sample: (name: string) => Promise<{ headers: Record<string, string>; body: string }>
  /** Waits until `count` events have arrived under a name. Fails if nothing more arrives. */
  awaitEvents: (name: string, count: number) => Promise<Summary>
}

export async function startReceiver(portCount: number): Promise<Receiver> {
  const env = { RECEIVER_PORTS: String(portCount) }
  const program = await startProgram('bench/reference/receiver.ts', env)
  const ports: number[] = await ask(program, 'ports')
  const summarize = (name: string): Promise<Summary> => ask(program, `summary/${name}`)
  return {
    pid: program.pid,
    urlOf: (name, { behavior = 'ok', nth = 0 } = {}) =>
      `http://127.0.0.1:${ports[nth % ports.length]}/${behavior}/${name}`,
    summarize,
    arrivals: async (name) => new Map(await ask<[string, number][]>(program, `arrivals/${name}`)),
    sample: async (name) => {
      const { head, body } = await ask<{ head: string; body: string }>(program, `sample/${name}`)
      return { headers: readHeaders(head), body }
    },
    awaitEvents: (name, count) => awaitEvents(() => summarize(name), name, count),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  }
}

async function ask<T>({ port }: Service, what: string): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}/control/${what}`)
  const body: T = JSON.parse(await response.text())
  return body
}

/** Leaves out the headers that an HTTP client adds itself. */
function readHeaders(head: string): Record<string, string> {
  const lines = head.split('\r\n').slice(1)
  return Object.fromEntries(
    lines
      .map((line): [string, string] => {
        const colon = line.indexOf(': ')
        return [line.slice(0, colon), line.slice(colon + 2)]
      })
      .filter(([name]) => !['host', 'connection', 'content-length'].includes(name)),
  )
}

async function awaitEvents(
  summarize: () => Promise<Summary>,
  name: string,
  count: number,
): Promise<Summary> {
  let best = 0
  let stillSince = performance.now()
  for (;;) {
    const summary = await summarize()
    if (summary.events >= count) return summary
    if (summary.events > best) {
      best = summary.events
      stillSince = performance.now()
    }
    const stalledMs = performance.now() - stillSince
    assert(stalledMs < STALL_MS_MAX, `${name}: ${best} of ${count} events arrived, then no more`)
    await delay(POLL_MS)
  }
}
