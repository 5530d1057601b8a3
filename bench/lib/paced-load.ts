import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { machineMs } from './machine-clock.ts'
import { sampleEvent } from './sample-event.ts'

const CONNECTIONS = 32

export type Acknowledged = { id: string; key: string; acknowledgedAtMs: number }

/**
 * Open-loop load: sends each event at its scheduled time, without waiting for the previous response.
 * Unlike a closed loop, it doesn't slow down when the service falls behind.
 */
export async function postPaced({
  port,
  keys,
  perSecond,
  seconds,
}: {
  port: number
  /** Used in rotation. */
  keys: readonly string[]
  perSecond: number
  seconds: number
}): Promise<Acknowledged[]> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  const startedAtMs = machineMs()
  const posts: Promise<Acknowledged>[] = []
  for (let nth = 0; nth < perSecond * seconds; nth += 1) {
    const waitMs = startedAtMs + (nth * 1_000) / perSecond - machineMs()
    if (waitMs > 0) await delay(waitMs)
    posts.push(post(pool, keys[nth % keys.length] ?? '', nth))
  }
  const acknowledged = await Promise.all(posts)
  await pool.close()
  return acknowledged
}

async function post(pool: Pool, key: string, nth: number): Promise<Acknowledged> {
  const { statusCode, body } = await pool.request({
    method: 'POST',
    path: '/v1/events',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(sampleEvent(nth)),
  })
  const text = await body.text()
  const acknowledgedAtMs = machineMs()
  assert.equal(statusCode, 201, text)
  const { id }: { id: string } = JSON.parse(text)
  return { id, key, acknowledgedAtMs }
}
