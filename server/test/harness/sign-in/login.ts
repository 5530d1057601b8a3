import assert from 'node:assert/strict'
import { callAs, type Member } from '../dashboard/dashboard.ts'
import type { TestResponse, TestApp } from '../app/start-app.ts'

/** Sends the login form like a browser. */
export async function logIn(
  app: TestApp,
  credentials: { email: string; password: string },
  headers: Record<string, string> = {},
): Promise<TestResponse> {
  return await app.call('POST', '/dashboard/session', {
    body: { email: credentials.email, password: credentials.password },
    headers: { 'sec-fetch-site': 'same-origin', ...headers },
  })
}

/** Signs in with a password. */
export async function enter(
  app: TestApp,
  credentials: { email: string; password: string },
): Promise<{ cookie: string; call: Member['call'] }> {
  const response = await logIn(app, credentials)
  assert.equal(response.status, 200, response.text)
  const cookie = cookieIn(response)
  return { cookie, call: callAs(app, cookie) }
}

/** `name=value`, as the browser would return it. */
export function cookieIn({ headers }: TestResponse): string {
  return headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}
