import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { holdRequests } from './held-requests.ts'

const { annals, open, browserTest } = await startDashboard()

const company = await annals.createCompany()
const actor = { email: 'a-rather-long-address-of-a-service@acme.example' }
await storeEvents(annals, company.workspaceKey, [
  { category: 'auth', action: 'user.login', actor, metadata: { amount: { value: 7 }, ip: '::1' } },
  { category: 'billing', action: 'invoice.deleted', actor },
])
const owner = await signInAs(annals, company, 'OWNER')
const grid = (page: Page) => page.getByRole('grid', { name: 'Events' })
const rows = (page: Page) => grid(page).locator('[data-id]')

async function openExplorer(size = { width: 1_280, height: 800 }): Promise<Page> {
  const page = await open({ member: owner })
  await page.setViewportSize(size)
  await page.goto(`/app/explorer?workspaceId=${company.workspace.id}`)
  await expect(rows(page)).toHaveCount(2)
  await expect(page.getByRole('region', { name: 'Events over time' })).toContainText('2 events')
  return page
}

const boxes = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((all) =>
    all.map((element) => {
      const { left, top, width, height } = element.getBoundingClientRect()
      return [left, top, width, height].map(Math.round)
    }),
  )

browserTest('dangerous actions stand out, and dots have the colors of the chart', async () => {
  const page = await openExplorer()
  const colorOf = (text: string) =>
    grid(page)
      .getByText(text, { exact: true })
      .evaluate((element) => getComputedStyle(element).color)
  assert.notEqual(await colorOf('invoice.deleted'), await colorOf('user.login'))
  const chart = page.getByRole('region', { name: 'Events over time' })
  for (const category of ['auth', 'billing']) {
    const swatch = chart.getByRole('button', { name: category }).locator('i')
    const dot = grid(page).locator(`i[title=${category}]`)
    const background = (element: Element) => getComputedStyle(element).backgroundColor
    assert.equal(await dot.evaluate(background), await swatch.evaluate(background))
  }
})

browserTest('pointing at a row cuts none of its texts, and opening it moves nothing', async () => {
  const page = await openExplorer({ width: 1_600, height: 900 })
  const texts = '[role=gridcell] > span:first-of-type'
  const before = await boxes(page, texts)
  const parts = 'main section, [role=row]'
  const placed = await boxes(page, parts)
  const cell = rows(page).first().locator('[data-column=actor]')
  await cell.hover()
  await expect(cell.getByRole('button', { name: /^Filter by actor/ })).toBeVisible()
  assert.deepEqual(await boxes(page, texts), before)
  await rows(page).first().getByRole('gridcell').first().click()
  await expect(page.getByRole('complementary', { name: 'Event' })).toContainText('Verified')
  const after = await boxes(page, 'main section:not(aside section), [role=row]')
  assert.deepEqual(after, placed)
})

browserTest('metadata is aligned with the facts above it', async () => {
  const page = await openExplorer()
  await rows(page).filter({ hasText: 'user.login' }).getByRole('gridcell').first().click()
  const panel = page.getByRole('complementary', { name: 'Event' })
  const leftOf = (text: string) =>
    panel.getByText(text, { exact: true }).evaluate((element) => {
      const range = document.createRange()
      range.selectNodeContents(element)
      return range.getBoundingClientRect().left
    })
  const [key, value] = [await leftOf('Category'), await leftOf('auth')]
  assert.equal(await leftOf('ip'), key)
  for (const text of ['::1', '{1}', '7']) assert(Math.abs((await leftOf(text)) - value) <= 1, text)
  // After the arrow, but not further right than its own entries.
  const nested = await leftOf('amount')
  assert(nested > key && nested <= (await leftOf('value')), `amount starts at ${nested}`)
})

browserTest('the density is remembered', async () => {
  const page = await openExplorer()
  const heightOf = async () => (await rows(page).first().boundingBox())?.height
  assert.equal(await heightOf(), 34)
  await page.getByRole('button', { name: 'Columns, order, density and page size' }).click()
  await page.getByLabel('Density', { exact: true }).selectOption('Compact')
  await expect.poll(heightOf).toBe(26)
  await page.reload()
  await expect(rows(page)).toHaveCount(2)
  assert.equal(await heightOf(), 26)
})

browserTest('the theme is that of the system, light or dark, and remembered', async () => {
  const page = await openExplorer()
  const html = page.locator('html')
  const choose = async (name: string) => {
    await page.getByRole('button', { name: /^owner-.*@/ }).click()
    await page.getByRole('menuitem', { name }).click()
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await choose('Dark')
  await expect(html).toHaveAttribute('data-mantine-color-scheme', 'dark')
  await page.reload()
  await expect(rows(page)).toHaveCount(2)
  await expect(html).toHaveAttribute('data-mantine-color-scheme', 'dark')
  await choose('System')
  await expect(html).toHaveAttribute('data-mantine-color-scheme', 'light')
  await page.emulateMedia({ colorScheme: 'dark' })
  await expect(html).toHaveAttribute('data-mantine-color-scheme', 'dark')
})

browserTest('nothing moves for people who ask for reduced motion', async () => {
  const page = await open({ member: owner })
  const held = await holdRequests(page, 'GET', '/dashboard/exports')
  const countAnimations = () => page.evaluate(() => document.getAnimations().length)
  await page.goto(`/app/exports?workspaceId=${company.workspace.id}`)
  await expect(page.locator('.mantine-Skeleton-root').first()).toBeVisible()
  assert.equal(await countAnimations(), 0)
  await page.emulateMedia({ reducedMotion: 'no-preference' })
  await expect.poll(countAnimations).toBeGreaterThan(0)
  held.release()
})

browserTest('the least important columns drop out if the list is narrow', async () => {
  const page = await openExplorer()
  const header = (name: string) => grid(page).getByRole('columnheader', { name })
  await expect(header('Seq')).toBeVisible()
  await page.getByRole('button', { name: 'Facets' }).click()
  await expect(header('Seq')).toHaveCount(0)
  await expect(header('Resource')).toBeVisible()
  await page.goto(`/app/explorer?workspaceId=${company.workspace.id}&columns=time,action,seq`)
  await expect(header('Seq')).toBeVisible()
})
