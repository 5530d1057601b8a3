/** An event as a client sends it. */
export type DemoEvent = {
  timestamp: string
  category: string
  action: string
  actor: { id: string; email: string; role: string }
  resource: { type: string; id: string }
  metadata: Record<string, unknown>
}

const DAY_MS = 86_400_000
/** A little less than the 30-day range that shows them. */
const SPAN_MS = 29.9 * DAY_MS

const PEOPLE = [
  { id: 'usr_01', email: 'ana@acme.example', role: 'admin' },
  { id: 'usr_02', email: 'bo@acme.example', role: 'accountant' },
  { id: 'usr_03', email: 'chidi@acme.example', role: 'engineer' },
  { id: 'usr_04', email: 'dana@acme.example', role: 'support' },
  { id: 'usr_05', email: 'emre@acme.example', role: 'support' },
  { id: 'usr_06', email: 'fatima@acme.example', role: 'engineer' },
  { id: 'svc_billing', email: 'billing-service@acme.example', role: 'service' },
] as const

/** The kinds of events, with their relative frequency. */
const KINDS = [
  { category: 'auth', action: 'user.login', type: 'session', weight: 24 },
  { category: 'auth', action: 'user.logout', type: 'session', weight: 12 },
  { category: 'auth', action: 'login.failed', type: 'session', weight: 4 },
  { category: 'billing', action: 'invoice.created', type: 'invoice', weight: 16 },
  { category: 'billing', action: 'invoice.paid', type: 'invoice', weight: 13 },
  { category: 'billing', action: 'invoice.deleted', type: 'invoice', weight: 2 },
  { category: 'documents', action: 'document.viewed', type: 'document', weight: 18 },
  { category: 'documents', action: 'document.shared', type: 'document', weight: 6 },
  { category: 'members', action: 'member.invited', type: 'member', weight: 2 },
  { category: 'members', action: 'role.changed', type: 'member', weight: 2 },
  { category: 'security', action: 'api_key.rotated', type: 'api_key', weight: 1 },
] as const
type Kind = (typeof KINDS)[number]

const WEIGHTED: readonly Kind[] = KINDS.flatMap((kind) => Array<Kind>(kind.weight).fill(kind))

/**
 * Events of a typical company: busy during the day, quiet at night and on weekends. The same arguments
 * produce the same events, oldest first.
 */
export function demoEvents({
  count,
  endMs,
  spanMs = SPAN_MS,
}: {
  count: number
  endMs: number
  spanMs?: number
}): DemoEvent[] {
  const random = randomOf(7)
  const times = Array.from({ length: count }, () => busyTime(random, { endMs, spanMs })).toSorted(
    (a, b) => a - b,
  )
  return times.map((ms) => demoEvent(random, ms))
}

function demoEvent(random: () => number, ms: number): DemoEvent {
  const { category, action, type } = pick(WEIGHTED, random)
  const actor = action === 'invoice.created' ? PEOPLE[6] : pick(PEOPLE.slice(0, 6), random)
  const number = 1_000 + Math.floor(random() * 400)
  return {
    timestamp: new Date(ms).toISOString(),
    category,
    action,
    actor,
    resource: { type, id: `${type.slice(0, 3)}_${number}` },
    metadata: {
      ip: `203.0.113.${10 + Math.floor(random() * 60)}`,
      ...(type === 'invoice' && {
        amount: { value: Math.floor(random() * 90_000) / 100, currency: 'EUR' },
        customer: pick(CUSTOMERS, random),
      }),
      ...(action === 'role.changed' && { before: { role: 'support' }, after: { role: 'admin' } }),
      ...(action === 'document.shared' && { with: ['partner@example.com'], mayEdit: false }),
    },
  }
}

const CUSTOMERS = ['Nordlicht GmbH', 'Blue Harbour Ltd', 'Casa Verde', 'Tanaka & Co'] as const

function busyTime(random: () => number, { endMs, spanMs }: { endMs: number; spanMs: number }) {
  for (;;) {
    const ms = Math.floor(endMs - random() * spanMs)
    const at = new Date(ms)
    const isDay = at.getUTCHours() >= 7 && at.getUTCHours() < 18
    const isWeekend = at.getUTCDay() % 6 === 0
    if (random() < (isDay ? 1 : 0.15) * (isWeekend ? 0.25 : 1)) return ms
  }
}

function pick<T>(values: readonly T[], random: () => number): T {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new Error('nothing to pick from')
  return value
}

/** A small random number generator (mulberry32), so that the events are the same everywhere. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
