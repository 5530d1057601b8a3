import type { TestResponse } from '../harness/app/start-app.ts'

const TRIES_MAX = 1_000

/** Other cases use up the rate limit of a key that this case needs too. */
export async function afterRateLimit(send: () => Promise<TestResponse>): Promise<TestResponse> {
  for (let tries = 1; ; tries++) {
    const response = await send()
    if (response.status !== 429 || tries >= TRIES_MAX) return response
  }
}
