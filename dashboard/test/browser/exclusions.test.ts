import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { type Member, signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { walkExplorer } from '../../../server/test/harness/dashboard/explorer.ts'
import { parseJsonl, storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'
import { TIMEOUT_MS } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000
const company = await annals.createCompany()
const workspaceId = company.workspace.id
await storeEvents(
  annals,
  company.workspaceKey,
  demoEvents({ count: 300, endMs: Date.now(), spanMs: DAY_MS * 6 }),
)
const owner = await signInAs(annals, company, 'OWNER')

async function openExplorer(search: string, member: Member = owner): Promise<Page> {
  const page = await open({ member })
  await page.goto(`/app/explorer?range=7d&${search}`)
  return page
}

const total = (page: Page) =>
  page.getByRole('region', { name: 'Events over time' }).getByRole('status')
const rows = (page: Page) => page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
const chip = (page: Page, words: string) =>
  page.getByRole('button', { name: `Remove filter ${words}`, exact: true })

async function expectWithout(page: Page, not: readonly string[]): Promise<string[]> {
  return await expectFound(page, { not })
}

/** Expects the same events and the same total as the service returns for these filters. */
async function expectFound(
  page: Page,
  parameters: Record<string, readonly string[]>,
): Promise<string[]> {
  const found = await walkExplorer(owner, { workspaceId, ...parameters })
  await expect(total(page)).toHaveText(`${found.length} events`)
  await expect(page.getByRole('grid', { name: 'Events' })).toHaveAttribute('aria-busy', 'false')
  const ids = found.map(({ id }) => String(id))
  // The total can appear before the rows.
  await expect(async () => {
    const shown = await rows(page).evaluateAll((all) => all.map((row) => row.dataset['id']))
    assert.deepEqual(shown, ids.slice(0, shown.length))
  }).toPass({ timeout: TIMEOUT_MS })
  return ids
}

browserTest('excluding a value from its cell is stored in the URL and can be undone', async () => {
  const page = await openExplorer('columns=time,action,category,actor')
  const all = await expectWithout(page, [])
  const cell = rows(page).first().locator('[data-column=category]')
  const category = await cell.innerText()
  await cell.hover()
  await cell.getByRole('button', { name: `Exclude category: ${category}` }).click()
  await expect(chip(page, `not category: ${category}`)).toBeVisible()
  const left = await expectWithout(page, [`category:${category}`])
  assert(left.length > 0 && left.length < all.length)
  await page.reload()
  await expect(chip(page, `not category: ${category}`)).toBeVisible()
  await expectWithout(page, [`category:${category}`])
  await chip(page, `not category: ${category}`).click()
  await expectWithout(page, [])
})

browserTest(
  'a second value of a filter is added to the first, also in a view and an export',
  async () => {
    const page = await openExplorer('category=billing')
    const first = await expectFound(page, { category: ['billing'] })
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'category', exact: true }).click()
    await page.getByRole('option', { name: /^auth/ }).click()
    await expect(page.getByText('or category:')).toBeVisible()
    const both = await expectFound(page, { category: ['auth', 'billing'] })
    assert(both.length > first.length && first.length > 0)
    assert.deepEqual(new URL(page.url()).searchParams.getAll('category'), ['billing', 'auth'])

    await page.getByRole('button', { name: 'Save view' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Both')
    await dialog.getByRole('button', { name: 'Save view', exact: true }).click()
    await expect(dialog).toHaveCount(0)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expectWithout(page, [])
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('button', { name: /^Both/ }).click()
    await expectFound(page, { category: ['auth', 'billing'] })

    await page.getByRole('button', { name: 'Export events' }).click()
    await expect(dialog).toContainText(/category: (auth or billing|billing or auth)/)
    await expect(dialog).toContainText(`${both.length} rows`)
    await dialog.getByRole('button', { name: 'Create export' }).click()
    await expect(dialog).toContainText('Export created')
    await dialog.getByRole('link', { name: 'Go to Exports' }).click()
    await expect(page.getByRole('row').nth(1)).toContainText('category auth or billing')
    await page.goBack()

    await chip(page, 'category: billing').click()
    await expectFound(page, { category: ['auth'] })
    await expect(page.getByText('or category:')).toHaveCount(0)
  },
)

browserTest(
  'a handwritten link with several exclusions works, and shows the same to other members',
  async () => {
    const not = ['category:auth', 'action:invoice.paid', 'actorEmail:bo@acme.example']
    const search = not.map((text) => `not=${encodeURIComponent(text)}`).join('&')
    const viewer = await signInAs(annals, company, 'VIEWER', [workspaceId])
    for (const member of [owner, viewer]) {
      const page = await openExplorer(search, member)
      await expectWithout(page, not)
      await expect(chip(page, 'not actor email: bo@acme.example')).toBeVisible()
      await page.reload()
      await expectWithout(page, not)
    }
  },
)

browserTest(
  'the event panel excludes the values it shows, and for a resource only its ID',
  async () => {
    const page = await openExplorer('action=invoice.created')
    await rows(page).first().getByRole('gridcell').first().click()
    const panel = page.getByRole('complementary', { name: 'Event' })
    const what = panel.getByRole('region', { name: 'What' })
    await what.getByRole('button', { name: 'Exclude this resource' }).click()
    await expect(
      page.getByRole('button', { name: /^Remove filter not resource ID: / }),
    ).toHaveCount(1)
    await what.getByRole('button', { name: 'Exclude this action' }).click()
    await expect(chip(page, 'not action: invoice.created')).toBeVisible()
    await expect(chip(page, 'action: invoice.created')).toHaveCount(0)
    await expect(panel.getByRole('button', { name: 'Exclude this workspace' })).toHaveCount(0)
    await expect(panel.getByRole('button', { name: 'Exclude this role' })).toHaveCount(0)
  },
)

browserTest(
  'the filter menu excludes values by mouse and keyboard, and the keyboard removes chips',
  async () => {
    const page = await openExplorer('')
    await expectWithout(page, [])
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'action', exact: true }).click()
    await page.getByText('is not', { exact: true }).click()
    await page.getByRole('option', { name: /^user\.login/ }).click()
    await expectWithout(page, ['action:user.login'])
    const { keyboard } = page
    await page.getByRole('button', { name: 'Add filter', exact: true }).focus()
    await keyboard.press('Enter')
    await expect(page.getByLabel('Field to filter by')).toBeFocused()
    await keyboard.type('categ')
    await keyboard.press('Enter')
    await expect(page.getByRole('option', { name: /^billing/ })).toBeVisible()
    await keyboard.type('billing')
    await expect(page.getByRole('listbox').getByRole('option')).toHaveCount(1)
    await keyboard.press('Shift+Enter')
    await expectWithout(page, ['action:user.login', 'category:billing'])
    await chip(page, 'not action: user.login').focus()
    await keyboard.press('Delete')
    await expectWithout(page, ['category:billing'])
    await expect(page.getByRole('searchbox')).toBeFocused()
    await keyboard.press('Backspace')
    await expectWithout(page, [])
  },
)

browserTest(
  'at most twenty values can be excluded, and trying another shows the limit',
  async () => {
    const not = Array.from({ length: 21 }, (_, index) => `action:nothing.${index}`)
    const page = await openExplorer(not.map((text) => `not=${text}`).join('&'))
    await expectWithout(page, not.slice(0, 20))
    await expect(page.getByRole('button', { name: /^Remove filter not action: / })).toHaveCount(20)
    const full = 'You can exclude up to 20 values. Remove one first.'
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'category', exact: true }).click()
    await expect(page.getByRole('option', { name: /^billing/ })).toBeVisible()
    await page.keyboard.press('Shift+Enter')
    await expect(page.getByRole('alert')).toHaveText(full)
    await expect(page.getByLabel('Value of category')).toBeFocused()
    await page.keyboard.press('Escape')
    const cell = rows(page).first().locator('[data-column=action]')
    const exclude = cell.getByRole('button', { name: /^Exclude action/ })
    await cell.hover()
    await exclude.focus()
    await expect(exclude).toBeFocused()
    await expect(exclude).toHaveAccessibleDescription(full)
    await page.keyboard.press('Enter')
    await expect(page.getByRole('complementary', { name: 'Event' })).toHaveCount(0)
  },
)

browserTest('an empty result offers to remove an exclusion', async () => {
  const page = await openExplorer(
    `category=security&not=${encodeURIComponent('action:api_key.rotated')}`,
  )
  await page
    .getByRole('button', { name: /^Remove not action: api_key\.rotated \d+ events?$/ })
    .click()
  await expect(chip(page, 'not action: api_key.rotated')).toHaveCount(0)
  await expect(rows(page).first()).toBeVisible()
})

browserTest('the live tail omits excluded events', async () => {
  const page = await openExplorer(`live=true&not=${encodeURIComponent('category:noise')}`)
  await expect(rows(page).first()).toBeVisible()
  await storeEvents(annals, company.workspaceKey, [
    { category: 'noise', action: 'left.out' },
    { category: 'signal', action: 'came.through' },
  ])
  await expect(page.getByRole('row', { name: /came\.through/ })).toBeVisible()
  await expect(page.getByRole('row', { name: /left\.out/ })).toHaveCount(0)
})

browserTest('saved views and exports from the explorer keep exclusions', async () => {
  const not = ['category:auth', 'actorId:usr_02']
  const page = await openExplorer(not.map((text) => `not=${text}`).join('&'))
  const found = await expectWithout(page, not)
  await page.getByRole('button', { name: 'Save view' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Without logins')
  await dialog.getByRole('button', { name: 'Save view', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expectWithout(page, [])
  await page.getByRole('button', { name: 'Views' }).click()
  await page
    .getByRole('dialog', { name: 'Views' })
    .getByRole('button', { name: /^Without/ })
    .click()
  await expect(chip(page, 'not category: auth')).toBeVisible()
  await expectWithout(page, not)
  await page.getByRole('button', { name: 'Export events' }).click()
  await expect(dialog).toContainText('not category: auth, not actor ID: usr_02')
  await expect(dialog).toContainText(`${found.length} rows`)
  await dialog.getByRole('button', { name: 'Create export' }).click()
  await dialog.getByRole('link', { name: /Exports$/ }).click()
  await expect(page.getByRole('row').nth(1)).toContainText('not category auth, not actor ID usr_02')
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).first().click()
  const chunks: Buffer[] = []
  for await (const chunk of await (await downloading).createReadStream()) {
    chunks.push(Buffer.from(chunk))
  }
  const exported = parseJsonl(Buffer.concat(chunks).toString()).map(({ id }) => String(id))
  assert.deepEqual(exported.toSorted(), found.toSorted())
})
