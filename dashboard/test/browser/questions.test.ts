import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { clickBudget } from './click-budget.ts'
import { expect, startDashboard } from './dashboard.ts'

// Questions that a member has after signing in, each within a number of clicks. Those about deliveries,
// verification, views and completeness are in the tests of their pages.
const { annals, open, browserTest } = await startDashboard()

const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
const event = (action: string, email: string, id: string) => ({
  category: 'billing',
  action,
  actor: { email },
  resource: { type: 'invoice', id },
})
await storeEvents(annals, company.workspaceKey, [
  event('invoice.created', 'bo@acme.example', 'inv_1'),
  event('invoice.created', 'bo@acme.example', 'inv_2'),
  event('invoice.paid', 'ana@acme.example', 'inv_1'),
  event('invoice.deleted', 'chidi@acme.example', 'inv_1'),
  event('invoice.deleted', 'bo@acme.example', 'inv_2'),
])
const owner = await signInAs(annals, company, 'OWNER')

async function openStart(): Promise<Page> {
  const page = await open({ member: owner })
  await page.goto('/app')
  await expect(page.getByRole('grid', { name: 'Events' }).locator('[data-id]')).toHaveCount(5)
  return page
}

browserTest('finding out who deleted an invoice takes three clicks', async () => {
  const page = await openStart()
  const click = clickBudget(3)
  await click(page.getByRole('searchbox'))
  await page.keyboard.type('inv_1')
  const rows = page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
  await expect(rows).toHaveCount(3)
  const deleted = rows.filter({ hasText: 'invoice.deleted' })
  await expect(deleted).toContainText('chidi@acme.example')
  await click(deleted.getByRole('gridcell').first())
  const panel = page.getByRole('complementary', { name: 'Event' })
  await expect(panel.getByRole('region', { name: 'Who' })).toContainText('chidi@acme.example')
  await expect(panel.getByText('Verified', { exact: true })).toBeVisible()
  await click(panel.getByRole('button', { name: 'Same actor' }))
  await expect(rows).toHaveCount(1)
})

browserTest('downloading everything that a person did as CSV takes five clicks', async () => {
  const page = await openStart()
  const click = clickBudget(5)
  const cell = page.locator('[data-id] [data-column=actor]').filter({ hasText: 'bo@' }).first()
  await cell.hover()
  await click(cell.getByRole('button', { name: /^Filter by actor/ }))
  await expect(page.getByRole('region', { name: 'Events over time' })).toContainText('3 events')
  await click(page.getByRole('button', { name: 'Export events' }))
  const dialog = page.getByRole('dialog')
  await click(dialog.getByRole('radio', { name: 'CSV' }))
  await expect(dialog).toContainText('3 rows')
  await click(dialog.getByRole('button', { name: 'Create export' }))
  const downloading = page.waitForEvent('download')
  await click(dialog.getByRole('link', { name: 'Download' }))
  const download = await downloading
  assert.match(download.suggestedFilename(), /production.*\.csv$/i)
  const chunks: Buffer[] = []
  for await (const chunk of await download.createReadStream()) chunks.push(Buffer.from(chunk))
  const [head = '', ...lines] = Buffer.concat(chunks).toString().trim().split('\r\n')
  assert.match(head, /^id,seq,timestamp/)
  assert.equal(lines.length, 3)
  assert(lines.every((line) => line.includes('bo@acme.example')))
})

browserTest('rotating a key while its programs keep working takes six clicks', async () => {
  const page = await openStart()
  const click = clickBudget(6)
  await click(page.getByRole('link', { name: 'Keys', exact: true }).first())
  await click(page.getByRole('button', { name: 'Actions for Production key' }))
  await click(page.getByRole('menuitem', { name: 'Rotate key' }))
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByRole('status')).toContainText(/works until .*, then expires\./)
  await click(dialog.getByRole('button', { name: 'Rotate key' }))
  const secret = await dialog.getByTestId('secret').innerText()
  await click(dialog.getByRole('button', { name: 'I’ve copied it' }))
  await expect(page.getByRole('row', { name: /Rotating/ })).toBeVisible()
  for (const key of [company.workspaceKey, secret]) {
    const { status } = await annals.call('GET', '/v1/keys/status', { key })
    assert.equal(status, 200)
  }
})

browserTest('inviting a viewer to a workspace takes seven clicks', async () => {
  const page = await openStart()
  const click = clickBudget(7)
  await click(page.getByRole('link', { name: 'Members' }).first())
  await click(page.getByRole('button', { name: 'Invite member' }))
  const dialog = page.getByRole('dialog')
  // The first field has the focus.
  await page.keyboard.type('gina@acme.example')
  await click(dialog.getByRole('radio', { name: 'Viewer' }))
  await click(dialog.getByRole('combobox', { name: 'Workspaces' }))
  await click(page.getByRole('option', { name: 'Production' }))
  await click(dialog.getByRole('button', { name: 'Invite member' }))
  await expect(dialog.getByTestId('secret')).toContainText('/app/link#')
  await click(dialog.getByRole('button', { name: 'I’ve copied it' }))
  const row = page.getByRole('table', { name: 'Open invitations' }).getByRole('row').nth(1)
  await expect(row).toContainText(/gina@acme\.example.*Viewer.*Production/)
})
