import type { AttributeValue, Span, SpanKind } from './tracer.ts'

/* OTLP as JSON: times and 64-bit integers are strings, ids are hexadecimal. */

export type Resource = Readonly<Record<string, string>>

const SCOPE = { name: 'annals' }
const KINDS = { internal: 1, server: 2, client: 3 } as const satisfies Record<SpanKind, number>
const STATUS_ERROR = 2

export function encodeSpans(spans: readonly Span[], resource: Resource): string {
  const scopeSpans = [{ scope: SCOPE, spans: spans.map(spanJson) }]
  return JSON.stringify({ resourceSpans: [{ resource: resourceJson(resource), scopeSpans }] })
}

export function encodeMetrics(metrics: readonly object[], resource: Resource): string {
  const scopeMetrics = [{ scope: SCOPE, metrics }]
  return JSON.stringify({ resourceMetrics: [{ resource: resourceJson(resource), scopeMetrics }] })
}

/** Nanoseconds since 1970, exact to the microsecond. */
export function unixNano(ms: number): string {
  return `${Math.round(ms * 1_000)}000`
}

export function attributesJson(attributes: Readonly<Record<string, AttributeValue>>) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }))
}

function resourceJson(resource: Resource) {
  return { attributes: attributesJson(resource) }
}

function spanJson(span: Span) {
  const { traceId, spanId, parentSpanId, name, kind, startedAtMs, endedAtMs, links } = span
  return {
    traceId,
    spanId,
    ...(parentSpanId !== null && { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: unixNano(startedAtMs),
    endTimeUnixNano: unixNano(endedAtMs ?? startedAtMs),
    attributes: attributesJson(span.attributes),
    ...(links.length > 0 && { links }),
    status: span.isFailed ? { code: STATUS_ERROR } : {},
  }
}
