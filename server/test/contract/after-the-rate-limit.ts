import type { Answer } from '../harness/start-app.ts'

const TRIES_MAX = 1_000

/** Other cases exhaust the rate of a key that this one needs too. */
export async function afterTheRateLimit(send: () => Promise<Answer>): Promise<Answer> {
  for (let tries = 1; ; tries++) {
    const answer = await send()
    if (answer.status !== 429 || tries >= TRIES_MAX) return answer
  }
}
