import assert from 'node:assert/strict'
import { startApp } from '../../src/app.ts'
import { parseConfig } from '../../src/config.ts'
import { limitHeapGrowth } from '../../src/platform/heap-growth.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { TIMEOUT_FACTOR } from '../harness/timing/timeout-factor.ts'
import type { TargetReport } from './target.ts'

/**
 * The service under attack, in a separate process. It sends its address to the parent once, and a
 * report whenever the parent asks. An uncaught exception ends the process.
 */
const { gc } = globalThis
const send = process.send?.bind(process)
assert(gc && send, 'fork this file with --expose-gc')

// As `annals serve` does.
const heapLimit = limitHeapGrowth()

// Without workers, so that nothing a hostile client creates causes outbound connections.
const app = await startApp({
  config: parseConfig(process.env),
  logger: createLogger('error', 'stderr'),
  role: 'api',
  // Otherwise a busy machine would cause outages.
  timeoutFactor: TIMEOUT_FACTOR,
})
send({ url: app.url })

process.on('message', (order) => {
  if (order === 'stop') void stop()
  else report()
})

function report(): void {
  // The first collection runs finalizers, whose garbage the later ones collect.
  for (let nth = 0; nth < 3; nth += 1) gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  const rssBytesMax = process.resourceUsage().maxRSS * 1_024
  const figures: TargetReport = { heapBytes: heapUsed, rssBytes: rss, rssBytesMax }
  send?.(figures)
}

async function stop(): Promise<void> {
  await app[Symbol.asyncDispose]()
  heapLimit[Symbol.dispose]()
  process.disconnect()
}
