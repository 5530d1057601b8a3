import assert from 'node:assert/strict'
import type { Locator } from '@playwright/test'

/** Clicks for a task that must not take more than `clicksMax`. */
export function clickBudget(clicksMax: number): (target: Locator) => Promise<void> {
  let left = clicksMax
  return async (target) => {
    assert(left > 0, `the task takes more than ${clicksMax} clicks`)
    left -= 1
    await target.click()
  }
}
