import type { Page } from '@playwright/test'

/** Clicks the first cell, the time, because other cells can show a filter button under the pointer. */
export async function openEvent(page: Page, action: string): Promise<void> {
  const row = page.getByRole('grid', { name: 'Events' }).getByRole('row', { name: action })
  await row.getByRole('gridcell').first().click()
}
