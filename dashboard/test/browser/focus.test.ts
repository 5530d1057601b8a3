import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { expect, startDashboard } from './dashboard.ts'
import { holdRequests } from './held-requests.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest('“Verify chain” keeps the focus while the chain is verified', async () => {
  const company = await annals.createCompany()
  await sendEvents(annals, company.workspaceKey, [{ category: 'c', action: 'user.login' }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  const held = await holdRequests(page, 'POST', '/dashboard/integrity/runs')
  await page.goto('/app/integrity')
  const chain = page.getByRole('region', { name: 'Production' })
  const verify = chain.getByRole('button', { name: /^Verify/ })
  await verify.focus()
  await page.keyboard.press('Enter')
  await expect(verify).toHaveAttribute('aria-busy', 'true')
  await expect(verify).toBeFocused()
  // Clicking again while the button is busy starts nothing.
  await page.keyboard.press('Enter')
  await expect.poll(() => held.heldCount()).toBe(1)
  held.release()
  await expect(chain.getByRole('status')).toContainText('The chain holds')
  expect(held.heldCount()).toBe(1)
  await expect(verify).toHaveText('Verify chain')
  await expect(verify).toBeFocused()
})

browserTest('loading more of a list with the keyboard keeps the focus until the end', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'OWNER')
  const body = { source: 'HOT', format: 'CSV', filters: {} }
  for (let made = 0; made < 31; made += 1) {
    expect((await member.call('POST', '/dashboard/exports', { body })).status).toBe(201)
  }
  const page = await open({ member })
  await page.goto('/app/exports')
  await page.getByRole('button', { name: 'Show older exports' }).focus()
  const held = await holdRequests(page, 'GET', '/dashboard/exports')
  await page.keyboard.press('Enter')
  const focused = page.locator('button:focus')
  await expect(focused).toHaveAttribute('aria-busy', 'true')
  held.release()
  await expect(page.getByRole('row')).toHaveCount(32)
  await expect(focused).toHaveText('No more results')
})
