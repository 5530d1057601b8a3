import type { Page } from '@playwright/test'

/** Requests that the page has sent but that don't reach the service until `release` is called. */
type HeldRequests = { heldCount: () => number; release: () => void }

export async function holdRequests(
  page: Page,
  method: string,
  path: string,
): Promise<HeldRequests> {
  const gate = Promise.withResolvers<void>()
  let count = 0
  await page.route(
    ({ pathname }) => pathname === path,
    async (route) => {
      if (route.request().method() === method) {
        count += 1
        await gate.promise
      }
      await route.continue()
    },
  )
  return { heldCount: () => count, release: gate.resolve }
}
