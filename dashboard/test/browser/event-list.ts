import type { Page } from '@playwright/test'

/** By its first cell, the time: in the others the pointer may meet a "filter by this". */
export async function openEvent(page: Page, action: string): Promise<void> {
  const row = page.getByRole('grid', { name: 'Events' }).getByRole('row', { name: action })
  await row.getByRole('gridcell').first().click()
}
