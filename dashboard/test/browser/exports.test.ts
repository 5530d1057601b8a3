import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest('the list of exports shows only those of the selected workspace', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const member = await signInAs(annals, company, 'ADMIN')
  for (const { id } of company.workspaces) {
    const body = { source: 'HOT', format: 'JSONL', filters: { workspaceId: id } }
    expect((await member.call('POST', '/dashboard/exports', { body })).status).toBe(201)
  }
  const page = await open({ member })
  await page.goto('/app/exports')
  const jobs = page.getByRole('table', { name: 'Exports, newest first' }).locator('tbody tr')
  await expect(jobs).toHaveCount(2)
  await page.getByRole('combobox', { name: 'Workspace' }).click()
  await page.getByRole('option', { name: 'Staging' }).click()
  await expect(jobs).toHaveCount(1)
  await expect(jobs).toContainText('from Staging')
})

browserTest('the arrow keys reach a disabled menu item, which shows the reason', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'ADMIN')
  const body = { source: 'HOT', format: 'JSONL' }
  const { json } = await member.call('POST', '/dashboard/exports', { body })
  await member.call('POST', `/dashboard/exports/${json.id}/cancel`)
  const page = await open({ member })
  await page.goto('/app/exports')
  await page.getByRole('button', { name: /^Actions for export/ }).focus()
  await page.keyboard.press('Enter')
  const cancel = page.getByRole('menuitem', { name: 'Cancel export…' })
  await expect(cancel).toBeVisible()
  await expect(page.locator('[role=menu]:focus-within')).toBeVisible()
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('End')
  await expect(cancel).toBeFocused()
  await expect(cancel).toHaveAccessibleDescription('This export has already ended.')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(cancel).toBeVisible()
})
