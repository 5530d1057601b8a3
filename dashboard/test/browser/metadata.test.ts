import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { learnAllEventTypes } from '../../../server/test/harness/event/event-types.ts'
import { walkExplorer } from '../../../server/test/harness/dashboard/explorer.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { violationsOf } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

const IP = '185.220.101.3'
const company = await annals.createCompany({ plan: 'PRO' })
const workspaceId = company.workspace.id
await storeEvents(
  annals,
  company.workspaceKey,
  Array.from({ length: 60 }, (_, nth) => ({
    category: 'auth',
    action: nth === 59 ? 'key.deleted' : 'user.login',
    actor: { id: `usr_${nth % 4}`, role: nth % 2 === 0 ? 'member' : 'admin' },
    metadata: {
      ip: nth % 6 === 5 ? IP : '192.0.2.1',
      request: { id: `req_${nth}`, region: nth % 3 === 2 ? 'eu' : 'us' },
      count: nth,
    },
  })),
)
const owner = await signInAs(annals, company, 'OWNER')

const total = (page: Page) =>
  page.getByRole('region', { name: 'Events over time' }).getByRole('status')
const rows = (page: Page) => page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
const chip = (page: Page, words: string) =>
  page.getByRole('button', { name: `Remove filter ${words}`, exact: true })

async function openExplorer(search = ''): Promise<Page> {
  const page = await open({ member: owner })
  await page.goto(`/app/explorer?range=24h&workspaceId=${workspaceId}${search}`)
  return page
}

async function expectCount(page: Page, count: number): Promise<void> {
  await expect(total(page)).toHaveText(count === 1 ? '1 event' : `${count} events`)
  await expect(rows(page)).toHaveCount(count)
}

browserTest(
  'searching for an address finds the events that have it in their metadata',
  async () => {
    const page = await openExplorer()
    await expect(total(page)).toHaveText('60 events')
    await page.getByRole('searchbox').fill(IP)
    await expectCount(page, 10)
    await page.getByRole('searchbox').fill('REQ_17')
    await expectCount(page, 1)
  },
)

browserTest(
  'a value in the event panel becomes a filter, in the URL and with other values',
  async () => {
    const page = await openExplorer()
    await openEvent(page, 'key.deleted')
    const event = page.getByRole('complementary', { name: 'Event' })
    await event.getByRole('button', { name: 'Filter by this metadata.ip', exact: true }).click()
    await expect(chip(page, `metadata.ip: ${IP}`)).toBeVisible()
    await expectCount(page, 10)
    await event
      .getByRole('button', { name: 'Filter by this metadata.request.region', exact: true })
      .click()
    await event.getByRole('button', { name: 'Filter by this role', exact: true }).click()
    await expect(chip(page, 'actor role: admin')).toBeVisible()
    const filters = { 'metadata.ip': IP, 'metadata.request.region': 'eu', actorRole: 'admin' }
    const expected = await walkExplorer(owner, { workspaceId, ...filters })
    assert(expected.length > 0)
    await expectCount(page, expected.length)
    await page.reload()
    await expect(chip(page, 'metadata.request.region: eu')).toBeVisible()
    await expectCount(page, expected.length)
    assert.deepEqual(await violationsOf(page), [])
    await chip(page, 'actor role: admin').click()
    await chip(page, 'metadata.request.region: eu').click()
    await expectCount(page, 10)
    await chip(page, `metadata.ip: ${IP}`).click()
    await expect(total(page)).toHaveText('60 events')
  },
)

browserTest('the filter menu suggests metadata keys and takes a value or "exists"', async () => {
  await learnAllEventTypes(annals.app.database.db, workspaceId)
  const page = await openExplorer()
  const search = (name: string) => page.getByRole('textbox', { name, exact: true })
  const chooseKey = async () => {
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'metadata', exact: true }).click()
  }
  await chooseKey()
  await page.getByRole('option', { name: 'ip', exact: true }).click()
  await search('Value of metadata.ip').fill(IP)
  assert.deepEqual(await violationsOf(page), [])
  await page.keyboard.press('Enter')
  await expect(chip(page, `metadata.ip: ${IP}`)).toBeVisible()
  await expectCount(page, 10)
  await chooseKey()
  await search('Metadata key').fill('request.id')
  await page.keyboard.press('Enter')
  await search('Value of metadata.request.id').fill('req_17')
  await page.keyboard.press('Enter')
  await expectCount(page, 1)
  await chip(page, 'metadata.request.id: req_17').click()
  await chooseKey()
  await search('Metadata key').fill('missing')
  await page.keyboard.press('Enter')
  await page.getByRole('option', { name: 'exists', exact: true }).click()
  await expect(chip(page, 'metadata.missing: exists')).toBeVisible()
  await expect(total(page)).toHaveText('0 events')
})

browserTest('a filter typed into the search field becomes a chip', async () => {
  const page = await openExplorer()
  await expect(total(page)).toHaveText('60 events')
  const box = page.getByRole('searchbox')
  await box.fill(`metadata.ip:${IP}`)
  await expect(page.getByText('Press Enter to add the filter')).toBeVisible()
  await box.press('Enter')
  await expect(chip(page, `metadata.ip: ${IP}`)).toBeVisible()
  await expect(box).toHaveValue('')
  await expectCount(page, 10)
  await box.fill('metadata.request.region:*')
  await box.press('Enter')
  await expect(chip(page, 'metadata.request.region: exists')).toBeVisible()
  await expectCount(page, 10)
  assert.equal(new URL(page.url()).searchParams.has('text'), false)
})

browserTest('metadata filters work in saved views and exports', async () => {
  const page = await openExplorer(`&metadata=ip%3D${IP}&metadata=request&metadata=count%3D59`)
  await expect(chip(page, 'metadata.request: exists')).toBeVisible()
  await expectCount(page, 1)
  await chip(page, 'metadata.count: 59').click()
  await expectCount(page, 10)
  await page.getByRole('button', { name: 'Save view' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Name' }).fill('From the address')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await expect(dialog).toBeHidden()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await expect(total(page)).toHaveText('60 events')
  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByRole('button', { name: 'From the address', exact: false }).first().click()
  await expect(chip(page, `metadata.ip: ${IP}`)).toBeVisible()
  await expect(chip(page, 'metadata.request: exists')).toBeVisible()
  await expectCount(page, 10)
  await page.getByRole('button', { name: 'Export events' }).click()
  const form = page.getByRole('dialog', { name: 'Export these events' })
  await expect(form).toContainText(`metadata.ip: ${IP}`)
  await expect(form.getByRole('status')).toContainText('10 rows')
  await form.getByRole('button', { name: 'Create export' }).click()
  await expect(form).toContainText('Export created.')
  await page.goto('/app/exports')
  await expect(page.getByText(`metadata.ip ${IP}`).first()).toBeVisible()
})
