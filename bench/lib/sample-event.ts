import { randomUUID } from 'node:crypto'

const CATEGORIES = ['billing', 'auth', 'users', 'projects', 'settings', 'files', 'api', 'security']
const ACTIONS = [
  'created',
  'updated',
  'deleted',
  'viewed',
  'exported',
  'shared',
  'failed',
  'renamed',
]

/** About half a kilobyte, with every part and an idempotency key, like the events of a real product. */
export function sampleEvent(nth: number, timestamp?: string): Record<string, unknown> {
  const category = CATEGORIES[nth % CATEGORIES.length] ?? ''
  return {
    category,
    action: `${category}.${ACTIONS[(nth >> 3) % ACTIONS.length]}`,
    ...(timestamp !== undefined && { timestamp }),
    actor: { id: `usr_${nth % 5_000}`, email: `person${nth % 5_000}@acme.example`, role: 'admin' },
    resource: { type: category, id: `res_${nth % 50_000}` },
    metadata: {
      ip: `198.51.100.${nth % 250}`,
      userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
      requestId: randomUUID(),
      durationMs: nth % 900,
      changed: ['name', 'amount', 'owner'],
      success: nth % 10 !== 0,
    },
    idempotencyKey: randomUUID(),
  }
}
