import type { Page } from '@playwright/test'
import { expect } from './dashboard.ts'
import { clickButton, DIALOG, testPages } from './page-case.ts'

await testPages(({ workspace, eventId }) => {
  const explorer = `/app/explorer?workspaceId=${workspace.id}&range=30d`
  const all = '/app/explorer?workspaceId=all&range=7d'
  const types = `/app/event-types?workspaceId=${workspace.id}`
  const listed = { path: explorer, shows: /user\.login/ }
  const exports = { path: '/app/exports', shows: 'Ready to download' }
  return [
    { name: 'the welcome page', path: '/app/welcome', shows: /^Received / },
    { name: 'the explorer', ...listed },
    { name: 'the explorer of all workspaces', path: all, shows: /user\.login/ },
    {
      name: 'the event panel',
      path: `${explorer}&event=${eventId}`,
      shows: 'Verified',
      opens: 'aside[aria-label=Event]',
    },
    {
      name: 'a search without results',
      path: `${explorer}&category=auth&action=nothing`,
      shows: 'Try removing one',
    },
    {
      name: 'the filter menu',
      ...listed,
      act: openFilterMenu,
      opens: '.mantine-Combobox-dropdown',
    },
    { name: 'the facets', ...listed, act: showFacets, opens: 'aside[aria-label=Facets]' },
    { name: 'the command palette', ...listed, act: openPalette, opens: DIALOG },
    { name: 'the calendar', ...listed, act: openCalendar, opens: DIALOG },
    { name: 'the dialog to save a view', ...listed, act: clickButton('Save view'), opens: DIALOG },
    {
      name: 'the dialog to export events',
      ...listed,
      act: clickButton('Export events'),
      opens: DIALOG,
    },
    { name: 'event types', path: types, shows: /user\.login/ },
    {
      name: 'an event type',
      path: `${types}&category=auth&action=user.login`,
      shows: 'Metadata keys',
    },
    { name: 'exports', ...exports },
    {
      name: 'the dialog to create an export',
      ...exports,
      act: clickButton('Create export'),
      opens: DIALOG,
    },
    { name: 'export templates', path: '/app/exports?tab=templates', shows: 'Billing of the week' },
  ]
})

async function openFilterMenu(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Add filter', exact: true }).click()
  await page.getByRole('option', { name: 'category', exact: true }).click()
  await expect(page.getByRole('option', { name: /billing/ })).toBeVisible()
}

async function showFacets(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Facets' }).click()
  await expect(page.getByRole('region', { name: 'Metadata keys' })).toBeVisible()
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press('Control+k')
  await page.keyboard.type('e')
  const results = page.getByRole('listbox', { name: 'Results' })
  await expect(results.getByRole('option').first()).toBeVisible()
}

async function openCalendar(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Time: / }).click()
  await page.getByRole('menuitem', { name: 'Custom range…' }).click()
  await expect(page.getByRole('dialog')).toContainText('Choose the first day.')
}
