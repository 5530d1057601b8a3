import { randomHex } from '../id.ts'
import type { Clock } from '../time/clock.ts'
import type { SamplerName } from './otlp-settings.ts'

export type SpanContext = { traceId: string; spanId: string }
/** The caller's span, from its `traceparent` header. */
export type RemoteParent = SpanContext & { isSampled: boolean }
export type SpanKind = 'internal' | 'server' | 'client'
export type AttributeValue = string | number

const LINKS_MAX = 128
/** Recent spans, and as many recent traces that their callers didn't sample. An entry has at most about 300 bytes. */
const REMEMBERED_MAX = 10_000

type SpanOptions = {
  name: string
  kind: SpanKind
  traceId: string
  parentSpanId: string | null
  startedAtMs: number
  tracer: Pick<SpanOwner, 'finish' | 'remember'>
}
type SpanOwner = {
  finish: (span: Span) => void
  remember: (id: string, context: SpanContext) => void
}

/**
 * A sampled span. What isn't sampled has no span. Attributes never contain data of tenants: no ids of theirs,
 * no paths, queries, addresses, keys or contents.
 */
export class Span implements SpanContext, Disposable {
  readonly name: string
  readonly kind: SpanKind
  readonly traceId: string
  readonly spanId = randomHex(8)
  readonly parentSpanId: string | null
  readonly startedAtMs: number
  readonly attributes: Record<string, AttributeValue> = {}
  readonly links: SpanContext[] = []
  readonly #tracer: SpanOptions['tracer']
  readonly #startedMs = performance.now()
  #endedAtMs: number | null = null
  #errorType: string | null = null

  constructor({ name, kind, traceId, parentSpanId, startedAtMs, tracer }: SpanOptions) {
    this.name = name
    this.kind = kind
    this.traceId = traceId
    this.parentSpanId = parentSpanId
    this.startedAtMs = startedAtMs
    this.#tracer = tracer
  }

  /** Null until it has ended. */
  get endedAtMs(): number | null {
    return this.#endedAtMs
  }

  get isFailed(): boolean {
    return this.#errorType !== null
  }

  startChild(name: string, kind: SpanKind = 'internal'): Span {
    const { traceId, spanId: parentSpanId } = this
    const startedAtMs = this.#now()
    return new Span({ name, kind, traceId, parentSpanId, startedAtMs, tracer: this.#tracer })
  }

  addLink({ traceId, spanId }: SpanContext): void {
    if (this.links.length < LINKS_MAX) this.links.push({ traceId, spanId })
  }

  /** Work that is done later for the event or export job refers to this span. */
  remember(id: string): void {
    const { traceId, spanId } = this
    this.#tracer.remember(id, { traceId, spanId })
  }

  /** `type` is a code or a class of errors, never a message. */
  fail(type: string): void {
    this.#errorType = type
    this.attributes['error.type'] = type
  }

  /** Only the first call has an effect. */
  end(): void {
    if (this.#endedAtMs !== null) return
    this.#endedAtMs = this.#now()
    this.#tracer.finish(this)
  }

  [Symbol.dispose](): void {
    this.end()
  }

  /** The wall time, measured from the start of the trace's first span here, so that clock steps don't matter. */
  #now(): number {
    return this.startedAtMs + performance.now() - this.#startedMs
  }
}

type TracerOptions = {
  sampler: SamplerName
  /** The share of traces to sample, for the samplers by ratio. */
  ratio: number
  clock: Clock
  onEnd: (span: Span) => void
}

/** Starts spans. Returns null for what isn't sampled. */
export class Tracer {
  readonly #options: TracerOptions
  /** Spans by the id of the event or export job that they created. */
  readonly #recent = new Map<string, SpanContext>()
  /** Ids of traces that their callers didn't sample. Apart, so that they don't evict spans. */
  readonly #unsampled = new Set<string>()
  readonly #owner: SpanOwner

  constructor(options: TracerOptions) {
    this.#options = options
    this.#owner = {
      finish: options.onEnd,
      remember: (id, context) => this.#remember(id, context),
    }
  }

  /** The trace id is that of the parent, if there is one. */
  startRequest(name: string, traceId: string, parent: RemoteParent | null): Span | null {
    const followsParent = parent !== null && this.#options.sampler.startsWith('parentbased_')
    if (followsParent && !parent.isSampled) this.#rememberUnsampled(traceId)
    if (!(followsParent ? parent.isSampled : this.#samples(traceId))) return null
    return this.#start({ name, kind: 'server', traceId, parentSpanId: parent?.spanId ?? null })
  }

  /** The root span of work that no request waits for, in its own trace. */
  startRoot(name: string): Span | null {
    const traceId = randomHex(16)
    if (!this.#samples(traceId)) return null
    return this.#start({ name, kind: 'internal', traceId, parentSpanId: null })
  }

  /**
   * An attempt belongs to the trace of its event. Its parent is the request that sent the event, if this node
   * still knows it. `traceparent` is for the receiver, which also learns if the trace isn't sampled.
   */
  startAttempt(
    name: string,
    { eventId, traceId: given }: { eventId: string; traceId: string | null },
  ): { span: Span | null; traceparent: string } {
    const traceId = given ?? randomHex(16)
    const parent = this.#recent.get(eventId)
    const isSampled = parent ? true : !this.#unsampled.has(traceId) && this.#samples(traceId)
    if (!isSampled) return { span: null, traceparent: `00-${traceId}-${randomHex(8)}-00` }
    const parentSpanId = parent?.spanId ?? null
    const span = this.#start({ name, kind: 'client', traceId, parentSpanId })
    return { span, traceparent: `00-${traceId}-${span.spanId}-01` }
  }

  /** The span that created the event or export job, if it was sampled and this node still knows it. */
  recall(id: string): SpanContext | null {
    return this.#recent.get(id) ?? null
  }

  #start(options: Omit<SpanOptions, 'startedAtMs' | 'tracer'>): Span {
    return new Span({ ...options, startedAtMs: this.#options.clock(), tracer: this.#owner })
  }

  #remember(id: string, context: SpanContext): void {
    this.#recent.delete(id)
    this.#recent.set(id, context)
    evictOldest(this.#recent)
  }

  #rememberUnsampled(traceId: string): void {
    this.#unsampled.delete(traceId)
    this.#unsampled.add(traceId)
    evictOldest(this.#unsampled)
  }

  /**
   * By the lower 56 bits of the trace id, as W3C and OpenTelemetry define it, so all services agree. Without the
   * last four of them, which a double can't represent.
   */
  #samples(traceId: string): boolean {
    const { sampler, ratio } = this.#options
    if (sampler.endsWith('always_on')) return true
    if (sampler.endsWith('always_off')) return false
    return Number.parseInt(traceId.slice(-14, -1), 16) >= (1 - ratio) * 2 ** 52
  }
}

/** Removes the entry that was added first, if there are too many. */
function evictOldest(entries: Map<string, SpanContext> | Set<string>): void {
  if (entries.size <= REMEMBERED_MAX) return
  for (const oldest of entries.keys()) {
    entries.delete(oldest)
    return
  }
}
