import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../logger.ts'
import type { SendOutcome } from './otlp-client.ts'
import { SpanExporter } from './span-exporter.ts'
import { Tracer } from './tracer.ts'

const FAILED: SendOutcome = { kind: 'failed', mayRetry: true, retryAfterMs: 0 }
const SENT: SendOutcome = { kind: 'sent', rejectedCount: 0 }
const EVERY_MS = 3_600_000

/** An exporter whose receiver answers as the test says. Counts the spans of each request. */
function createExporter(answer: () => Promise<SendOutcome>) {
  const counts: number[] = []
  const client = {
    send: ({ body }: { body: string }) => {
      counts.push(JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.length)
      return answer()
    },
  }
  const logger = createLogger('silent')
  const exporter = new SpanExporter({ client, resource: {}, everyMs: EVERY_MS, logger })
  const onEnd: ConstructorParameters<typeof Tracer>[0]['onEnd'] = (span) => exporter.add(span)
  const tracer = new Tracer({ sampler: 'always_on', ratio: 1, clock: () => 0, onEnd })
  const add = (count: number) => {
    for (let added = 0; added < count; added += 1) tracer.startRoot('span')?.end()
  }
  return { exporter, counts, add }
}

test('keeps 2,048 spans while 512 are being sent, and counts the rest', async () => {
  const { promise, resolve } = Promise.withResolvers<SendOutcome>()
  const { exporter, counts, add } = createExporter(() => promise)
  add(512)
  await new Promise(setImmediate)
  assert.deepEqual(counts, [512])
  add(3_000)
  assert.equal(exporter.droppedCount, 3_000 - 2_048)
  resolve(SENT)
  await exporter[Symbol.asyncDispose]()
  assert.deepEqual(counts, [512, 512, 512, 512, 512])
})

test('retries a batch four times with growing pauses, then drops it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const { exporter, counts, add } = createExporter(async () => FAILED)
  add(512)
  const after = async (ms: number): Promise<number> => {
    nowMs += ms
    t.mock.timers.tick(ms)
    await new Promise(setImmediate)
    return counts.length
  }
  assert.equal(await after(0), 1)
  assert.equal(await after(999), 1)
  assert.equal(await after(1), 2)
  assert.equal(await after(1_999), 2)
  assert.equal(await after(1), 3)
  assert.equal(await after(4_000), 4)
  assert.equal(exporter.droppedCount, 0)
  assert.equal(await after(8_000), 5)
  assert.equal(exporter.droppedCount, 512)
  // More spans don't shorten the pause.
  add(512)
  assert.equal(await after(0), 5)
  assert.equal(await after(15_999), 5)
  assert.equal(await after(1), 6)
  await exporter[Symbol.asyncDispose]()
})

test('a receiver can ask for a longer pause', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const { exporter, counts, add } = createExporter(async () => ({
    ...FAILED,
    retryAfterMs: 30_000,
  }))
  add(512)
  await new Promise(setImmediate)
  for (const [ms, expected] of [
    [29_999, 1],
    [1, 2],
  ] as const) {
    nowMs += ms
    t.mock.timers.tick(ms)
    await new Promise(setImmediate)
    assert.equal(counts.length, expected)
  }
  await exporter[Symbol.asyncDispose]()
})
