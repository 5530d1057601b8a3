import type { Span } from '../platform/otlp/tracer.ts'
import type { IngestTrace, PendingItem } from './pending-item.ts'

/** Measures how long the items of a sampled request wait for their first batch. */
export async function traceWait<T>(
  request: Span,
  items: readonly PendingItem[],
  submit: () => Promise<T>,
): Promise<T> {
  // If the queue refuses the items, the wait ends here.
  using wait = request.startChild('wait for batch')
  const trace = { request, wait }
  for (const item of items) item.trace = trace
  return await submit()
}

/**
 * Ends the waits of the items, and starts the span of their commit. It is in the trace of the first sampled
 * request of the batch, and linked with all of them. Null if none is sampled.
 */
export function startCommitSpan(items: readonly PendingItem[]): Span | null {
  let span: Span | null = null
  let last: IngestTrace | undefined
  for (const { trace } of items) {
    // The items of a request are mostly next to each other. A second link to one does no harm.
    if (!trace || trace === last) continue
    last = trace
    span ??= trace.request.startChild('commit batch', 'client')
    span.addLink(trace.request)
    trace.wait.addLink(span)
    trace.wait.end()
  }
  if (span) {
    span.attributes['db.system.name'] = 'postgresql'
    span.attributes['annals.batch.events'] = items.length
  }
  return span
}
