import type { Page } from '@playwright/test'

/** Requests that the page has sent but that don't reach the service until `release` is called. */
type HeldAnswers = { askedFor: () => number; release: () => void }

export async function holdAnswers(page: Page, method: string, path: string): Promise<HeldAnswers> {
  const gate = Promise.withResolvers<void>()
  let asked = 0
  await page.route(
    ({ pathname }) => pathname === path,
    async (route) => {
      if (route.request().method() === method) {
        asked += 1
        await gate.promise
      }
      await route.continue()
    },
  )
  return { askedFor: () => asked, release: gate.resolve }
}
