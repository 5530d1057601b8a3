import type { Page } from '@playwright/test'
import { expect } from './dashboard.ts'
import { clickButton, promiseSights } from './sight.ts'

await promiseSights(({ workspace, eventId }) => {
  const explorer = `/app/explorer?workspaceId=${workspace.id}&range=30d`
  const all = '/app/explorer?workspaceId=all&range=7d'
  const listed = { path: explorer, shows: /user\.login/ }
  const exports = { path: '/app/exports', shows: 'Ready to download' }
  return [
    { name: 'the welcome', path: '/app/welcome', shows: /has arrived/ },
    { name: 'the explorer', ...listed },
    { name: 'the explorer of all workspaces', path: all, shows: /user\.login/ },
    { name: 'the event drawer', path: `${explorer}&event=${eventId}`, shows: 'recomputed' },
    {
      name: 'a search without results',
      path: `${explorer}&category=auth&action=nothing`,
      shows: 'Take one away',
    },
    { name: 'the filter menu', ...listed, act: openFilterMenu },
    { name: 'the form of a saved view', ...listed, act: clickButton('Save view') },
    { name: 'the form of an export of this', ...listed, act: clickButton('Export exactly this') },
    { name: 'exports', ...exports },
    { name: 'the form of a new export', ...exports, act: clickButton('New export') },
    { name: 'export templates', path: '/app/exports?tab=templates', shows: 'Billing of the week' },
  ]
})

async function openFilterMenu(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'filter', exact: true }).click()
  await page.getByRole('option', { name: 'category', exact: true }).click()
  await expect(page.getByRole('option', { name: /billing/ })).toBeVisible()
}
