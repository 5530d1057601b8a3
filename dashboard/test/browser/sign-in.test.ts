import { callAs, signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { TIMEOUT_MS } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest(
  'a wrong password shows an error, and the right one opens the requested page',
  async () => {
    const { user } = await annals.createCompany()
    const page = await open()
    await page.goto('/app/keys?tab=allowlist')
    await page.getByLabel('Email').fill(user.email)
    await page.getByLabel(/^Password/).fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(page.getByRole('alert')).toContainText(/password/i)
    await page.getByLabel(/^Password/).fill(user.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(page.getByLabel('IP addresses and CIDR ranges, one per line')).toBeVisible()
    expect(new URL(page.url()).pathname).toBe('/app/keys')
  },
)

browserTest('after signing out, the browser keeps no data of the company', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'OWNER')
  const page = await open({ member })
  await page.goto('/app/integrity')
  await page.getByRole('link', { name: 'Workspaces' }).click()
  await expect(page.getByRole('main')).toContainText('Production')
  await page.getByRole('button', { name: member.email }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
  await expect(page.locator('body')).not.toContainText('Your session has ended')
  await expect(page.locator('body')).not.toContainText('Production')
  expect(await page.context().cookies()).toEqual([])
  expect((await member.call('GET', '/dashboard/session')).status).toBe(401)
  await page.goBack()
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
})

browserTest(
  'the sign-in page says that a session has ended, and leads back to the same page and filters',
  async () => {
    const { user, workspaceKey } = await annals.createCompany()
    await storeEvents(annals, workspaceKey, [
      { category: 'billing', action: 'invoice.paid' },
      { category: 'auth', action: 'user.login' },
    ])
    const page = await open()
    const signIn = async () => {
      await page.getByLabel('Email').fill(user.email)
      await page.getByLabel(/^Password/).fill(user.password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      const events = page.getByRole('grid', { name: 'Events' })
      await expect(events.getByRole('gridcell', { name: 'invoice.paid' })).toBeVisible()
      await expect(events.getByRole('row')).toHaveCount(2)
    }
    await page.goto('/app/explorer?range=7d&category=billing&not=action%3Ainvoice.void')
    await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
    await expect(page.getByText('Your session has ended')).toHaveCount(0)
    await signIn()
    await expect(page).toHaveURL(/workspaceId=/)
    const address = page.url()
    const [cookie] = await page.context().cookies()
    const member = callAs(annals, `${cookie?.name}=${cookie?.value}`)
    expect((await member('DELETE', '/dashboard/sessions')).status).toBe(200)
    const ended = page.getByText('Your session has ended')
    // A request of the page itself can be the first to be refused.
    await page.getByRole('button', { name: 'Refresh' }).or(ended).first().click()
    await expect(ended).toBeVisible()
    await page.reload()
    await expect(ended).toBeVisible()
    await signIn()
    expect(page.url()).toBe(address)
  },
)

browserTest('a removed member sees the sign-in page on their next click', async () => {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  const member = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const page = await open({ member })
  // A page that doesn't poll, because a poll would show the sign-in page before the click.
  await page.goto('/app/account')
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
  const removed = await admin.call('DELETE', `/dashboard/members/${member.userId}`)
  expect(removed.status).toBe(204)
  await page.getByRole('navigation', { name: 'Main', exact: true }).getByText('Webhooks').click()
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
  await expect(page.getByText('Your session has ended')).toBeVisible()
})

browserTest(
  'actions that a viewer can’t perform are visible but disabled, with the reason',
  async () => {
    const company = await annals.createCompany()
    const admin = await signInAs(annals, company, 'ADMIN')
    // Without a webhook, the page shows a sentence instead of the button.
    const made = await admin.call('POST', '/dashboard/webhooks', {
      body: { workspaceId: company.workspace.id, url: 'https://example.com/annals' },
    })
    expect(made.status).toBe(201)
    const member = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
    const page = await open({ member })
    const forbidden = [
      ['/app/explorer', 'Export events', 'create exports'],
      ['/app/exports', 'Create export', 'create exports'],
      ['/app/webhooks', 'Create webhook', 'create webhooks'],
      ['/app/integrity', 'Verify chain', 'verify chains'],
      ['/app/company/workspaces', 'Create workspace', 'create workspaces'],
    ] as const
    for (const [path, name, what] of forbidden) {
      await page.goto(path)
      const button = page.getByRole('button', { name }).first()
      await expect(button).toBeDisabled()
      await expect(button).toHaveAccessibleDescription(`Your role (viewer) can’t ${what}.`)
      // What the page loads meanwhile can move the button away from the pointer.
      await expect(async () => {
        await button.hover()
        const tooltip = page.getByRole('tooltip')
        await expect(tooltip).toHaveText(`Your role (viewer) can’t ${what}.`, { timeout: 2_000 })
      }).toPass({ timeout: TIMEOUT_MS })
    }
  },
)

browserTest(
  'a disabled control can be reached with Tab, shows the reason, and does nothing',
  async () => {
    const company = await annals.createCompany()
    const member = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
    const page = await open({ member })
    const changes: string[] = []
    page.on('request', (request) => request.method() !== 'GET' && changes.push(request.url()))
    await page.goto('/app/integrity')
    const verify = page.getByRole('button', { name: 'Verify chain' })
    await expect(verify).toBeVisible()
    await page.getByRole('combobox', { name: 'Workspace' }).focus()
    for (let tabs = 0; tabs < 4; tabs += 1) {
      if (await verify.evaluate((element) => element === document.activeElement)) break
      await page.keyboard.press('Tab')
    }
    await expect(verify).toBeFocused()
    await expect(page.getByRole('tooltip')).toHaveText('Your role (viewer) can’t verify chains.')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Space')
    await page.goto('/app/exports')
    await page.getByRole('button', { name: 'Create export' }).first().click({ force: true })
    await expect(page.getByRole('dialog')).toHaveCount(0)
    expect(changes).toEqual([])
  },
)

browserTest(
  'pages that a role can’t view are not in the navigation, and explain why when opened by a link',
  async () => {
    const company = await annals.createCompany()
    const member = await signInAs(annals, company, 'ANALYST', [company.workspace.id])
    const page = await open({ member })
    await page.goto('/app/keys')
    await expect(page.getByText('Your role can’t view keys')).toBeVisible()
    const names = page.getByRole('navigation', { name: 'Main', exact: true }).getByRole('link')
    await expect(names).toHaveText([
      'Explorer',
      'Event types',
      'Exports',
      'Webhooks',
      'Integrity',
      'Workspaces',
      'Plan and usage',
    ])
  },
)

browserTest('an analyst sees only the workspaces they were given', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces
  if (!production || !staging) throw new Error('expected two workspaces')
  await storeEvents(annals, production.workspaceKey, [{ category: 'c', action: 'hidden.one' }])
  await storeEvents(annals, staging.workspaceKey, [{ category: 'c', action: 'shown.one' }])
  const member = await signInAs(annals, company, 'ANALYST', [staging.id])
  const page = await open({ member })
  await page.goto('/app/explorer?workspaceId=all')
  const events = page.getByRole('grid', { name: 'Events' })
  await expect(events.getByRole('gridcell', { name: 'shown.one' })).toBeVisible()
  await expect(events.getByRole('row')).toHaveCount(2)
  await page.goto(`/app/explorer?workspaceId=${production.id}`)
  await expect(page.getByRole('alert').first()).toBeVisible()
  await expect(page.locator('body')).not.toContainText('hidden.one')
  await page.goto('/app/integrity')
  await expect(page.getByRole('region', { name: 'Staging' })).toBeVisible()
  await expect(page.locator('body')).not.toContainText('Production')
})
