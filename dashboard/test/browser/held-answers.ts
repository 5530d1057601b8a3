import type { Page } from '@playwright/test'

/** Requests that have left the page and do not reach the service before they are let go. */
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
