import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { expect, startDashboard } from './dashboard.ts'
import { holdRequests } from './held-requests.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest('a new name shows before the service responds, and stays after a reload', async () => {
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/company/workspaces')
  const held = await holdRequests(page, 'PATCH', `/dashboard/workspaces/${company.workspace.id}`)
  await page.getByRole('button', { name: 'Rename Production' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Live')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Live', exact: true })).toBeVisible()
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect.poll(() => held.heldCount()).toBe(1)
  // A reload before the response would cancel the request.
  const responded = page.waitForResponse((response) => response.request().method() === 'PATCH')
  held.release()
  await responded
  await page.reload()
  await expect(page.getByRole('region', { name: 'Live', exact: true })).toBeVisible()
})

browserTest('a name that the service rejects is rolled back, with the reason', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER', [company.workspace.id])
  const page = await open({ member: owner })
  await page.goto('/app/company/workspaces')
  const held = await holdRequests(page, 'PATCH', `/dashboard/workspaces/${company.workspace.id}`)
  await page.getByRole('button', { name: 'Rename Production' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Live')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('region', { name: 'Live', exact: true })).toBeVisible()
  await annals.app.database.db
    .updateTable('app_user')
    .set({ role: 'VIEWER' })
    .where('id', '=', owner.userId)
    .execute()
  held.release()
  await expect(page.getByRole('region', { name: 'Production' }).getByRole('alert')).toBeVisible()
  await expect(page.getByRole('region', { name: 'Live', exact: true })).toHaveCount(0)
})

browserTest(
  'renaming and sharing a view shows immediately, and deleting a missing view shows an error',
  async () => {
    const company = await annals.createCompany()
    const owner = await signInAs(annals, company, 'OWNER')
    const body = { name: 'Logins', visibility: 'PRIVATE', query: {}, workspaceId: null }
    const { json } = await owner.call('POST', '/dashboard/explorer/views', { body })
    const path = `/dashboard/explorer/views/${String(json['id'])}`
    const page = await open({ member: owner })
    await page.goto('/app/explorer')
    const held = await holdRequests(page, 'PATCH', path)
    const menu = page.getByRole('dialog', { name: 'Views' })
    await page.getByRole('button', { name: 'Views' }).click()
    await menu.getByRole('button', { name: 'Edit view Logins' }).click()
    const dialog = page.getByRole('dialog', { name: 'Edit view' })
    await dialog.getByLabel('Name').fill('Sign-ins')
    await dialog.getByLabel('All members').check()
    await page.keyboard.press('Enter')
    await expect(dialog).toHaveCount(0)
    await page.getByRole('button', { name: 'Views' }).click()
    await expect(menu.getByRole('button', { name: /^Sign-ins Shared by/ })).toBeVisible()
    held.release()
    await expect
      .poll(async () => (await owner.call('GET', '/dashboard/explorer/views')).json)
      .toMatchObject({ views: [{ name: 'Sign-ins', visibility: 'WORKSPACE' }] })

    await menu.getByRole('button', { name: 'Delete view Sign-ins' }).click()
    const question = page.getByRole('dialog', { name: 'Delete view Sign-ins?' })
    await expect(question).toBeVisible()
    // Deletes the view elsewhere once the dialog is open, so the page's next list lacks it.
    expect((await owner.call('DELETE', path)).status).toBe(204)
    await question.getByLabel('Type Sign-ins to confirm').fill('Sign-ins')
    await page.keyboard.press('Enter')
    await expect(question.getByRole('alert')).toBeVisible()
  },
)

browserTest('ending a session asks for confirmation', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const page = await open({ member: owner })
  await page.goto('/app/account')
  await page.getByRole('button', { name: /^Sign out:/ }).click()
  const question = page.getByRole('dialog', { name: 'Sign out', exact: true })
  await expect(question).toContainText('You can sign in again with your password.')
  await question.getByRole('button', { name: 'Go back' }).click()
  expect((await owner.call('GET', '/dashboard/session')).status).toBe(200)
  await page.getByRole('button', { name: /^Sign out:/ }).click()
  await question.getByRole('button', { name: 'Sign out', exact: true }).click()
  await expect(page.getByLabel('Email')).toBeVisible()
  expect((await owner.call('GET', '/dashboard/session')).status).toBe(401)
})
