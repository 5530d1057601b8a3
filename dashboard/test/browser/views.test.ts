import assert from 'node:assert/strict'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { clickBudget } from './click-budget.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { violationsOf } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] }

/** A company with two workspaces, with events in both. */
async function createCompany() {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  for (const { workspaceKey } of company.workspaces) {
    await sendEvents(annals, workspaceKey, [
      { category: 'billing', action: 'invoice.paid' },
      { category: 'auth', action: 'user.login' },
    ])
  }
  return company
}

async function createView(query: object, visibility = 'WORKSPACE') {
  const company = await createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const workspaceId = company.workspace.id
  const body = { name: 'Logins', visibility, workspaceId, query }
  const { json } = await owner.call('POST', '/dashboard/explorer/views', { body })
  return { company, owner, workspaceId, id: String(json.id) }
}

browserTest('saving a view and sharing its link takes three clicks', async () => {
  const company = await createCompany()
  const page = await open({
    member: await signInAs(annals, company, 'OWNER'),
    context: CLIPBOARD,
  })
  await page.goto(`/app/explorer?workspaceId=${company.workspace.id}&action=user.login&range=7d`)
  const click = clickBudget(3)
  await click(page.getByRole('button', { name: 'Save view' }))
  const dialog = page.getByRole('dialog', { name: 'Save view' })
  await dialog.getByLabel('Name').fill('Logins')
  await click(dialog.getByLabel(/^Everyone with access to/))
  await click(dialog.getByRole('button', { name: 'Save and copy link' }))
  await expect(dialog).toHaveCount(0)
  const bar = page.getByRole('region', { name: 'Open view' })
  await expect(bar).toContainText('Link copied')
  const link = await page.evaluate(() => navigator.clipboard.readText())
  assert.match(link, /\/app\/explorer\?view=[0-9a-f-]{36}$/)
  const colleague = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const theirs = await open({ member: colleague })
  await theirs.goto(link.replace(annals.url, ''))
  await expect(
    theirs.getByRole('button', { name: 'Remove filter action: user.login' }),
  ).toBeVisible()
  await expect(theirs.getByRole('button', { name: 'Time: Last 7 days' })).toBeVisible()
  await expect(theirs.getByRole('gridcell', { name: 'invoice.paid' })).toHaveCount(0)
  await expect(theirs.getByText('Modified')).toHaveCount(0)
})

browserTest('a changed query is marked, and can be reset or saved', async () => {
  const { owner, id } = await createView({ action: 'user.login', range: '7d' })
  const page = await open({ member: owner })
  await page.goto(`/app/explorer?view=${id}`)
  const filter = page.getByRole('button', { name: 'Remove filter action: user.login' })
  const bar = page.getByRole('region', { name: 'Open view' })
  await expect(filter).toBeVisible()
  await expect(bar).toContainText('LoginsShared')
  await expect(bar.getByText('Modified')).toHaveCount(0)
  // An open event isn't part of the query.
  await openEvent(page, 'user.login')
  await expect(page.getByRole('complementary', { name: 'Event' })).toBeVisible()
  await expect(bar.getByText('Modified')).toHaveCount(0)
  await filter.click()
  await expect(bar.getByText('Modified')).toBeVisible()
  expect(await violationsOf(page)).toEqual([])
  await bar.getByRole('button', { name: 'Reset' }).click()
  await expect(filter).toBeVisible()
  await expect(bar.getByText('Modified')).toHaveCount(0)
  await filter.click()
  await bar.getByRole('button', { name: 'Save changes' }).click()
  await expect(bar.getByText('Modified')).toHaveCount(0)
  const { json } = await owner.call('GET', '/dashboard/explorer/views')
  assert.deepEqual(json.views[0].query, { range: '7d' })
})

browserTest('a member who can’t change a view can’t save over it, and sees why', async () => {
  const { company, id, workspaceId } = await createView({ action: 'user.login' })
  const viewer = await signInAs(annals, company, 'VIEWER', [workspaceId])
  const page = await open({ member: viewer })
  await page.goto(`/app/explorer?view=${id}`)
  await page.getByRole('button', { name: 'Remove filter action: user.login' }).click()
  await expect(page.getByRole('button', { name: 'Save changes' })).toHaveAccessibleDescription(
    'Only its owner, an owner or an admin can change it.',
  )
})

browserTest('a link to a view or a workspace that the member can’t see says so', async () => {
  const { company, id, workspaceId } = await createView({ action: 'user.login' })
  const staging = company.workspaces[1]
  assert(staging)
  const viewer = await signInAs(annals, company, 'VIEWER', [staging.id])
  const page = await open({ member: viewer })
  await page.goto(`/app/explorer?view=${id}`)
  const message = page.getByRole('alert').filter({ hasText: 'This view isn’t available to you' })
  await expect(message).toContainText('belong to a workspace that you can’t access')
  await expect(page.getByRole('gridcell', { name: 'invoice.paid' })).toBeVisible()
  expect(await violationsOf(page)).toEqual([])
  await message.getByRole('button', { name: 'Close message' }).click()
  await expect(message).toHaveCount(0)

  await page.goto(`/app/explorer?workspaceId=${workspaceId}&action=user.login`)
  await expect(page.getByText('You can’t access this workspace')).toBeVisible()
  expect(await violationsOf(page)).toEqual([])
  await page.getByRole('button', { name: 'Show my workspaces' }).click()
  await expect(page.getByRole('gridcell', { name: 'user.login' })).toBeVisible()
})
