import assert from 'node:assert/strict'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { eventually } from '../../../server/test/harness/timing/eventually.ts'
import { expect, startDashboard } from './dashboard.ts'
import { PHONE, TIMEOUT_MS } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

async function send(key: string): Promise<number> {
  const body = { category: 'test', action: 'key.used' }
  return (await annals.call('POST', '/v1/events', { key, body })).status
}

browserTest(
  'a new key is shown once, works immediately, and is listed with its last use',
  async () => {
    const page = await open({
      member: await signInAs(annals, await annals.createCompany(), 'ADMIN'),
    })
    await page.goto('/app/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('billing service')
    await dialog.getByRole('button', { name: 'Create key' }).click()
    await expect(dialog.getByText('it won’t be shown again')).toBeVisible()
    const secret = await dialog.getByTestId('secret').innerText()
    await expect(dialog.getByText(`Bearer ${secret}`)).toBeVisible()
    expect(await send(secret)).toBe(201)
    await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
    await page.reload()
    const row = page.getByRole('row', { name: /billing service/ })
    await expect(row).toContainText('Active')
    await expect(page.locator('body')).not.toContainText(secret)
    await expect(async () => {
      await page.reload()
      await expect(row).toContainText('Active')
      expect(await row.innerText()).toContain('from 127.0.0.1')
    }).toPass({ timeout: TIMEOUT_MS })
  },
)

browserTest('a write-only key can send events but not read them, and its row says so', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('app server')
  await page.getByRole('combobox', { name: 'Permissions' }).click()
  await page.getByRole('option', { name: 'Write only' }).click()
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const key = await dialog.getByTestId('secret').innerText()
  expect(await send(key)).toBe(201)
  expect((await annals.call('GET', '/v1/events', { key })).status).toBe(403)
  await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
  await expect(page.getByRole('row', { name: /app server/ })).toContainText('Write only')
  await expect(page.getByRole('row', { name: /Production key/ })).toContainText('All permissions')
})

browserTest('a key has exactly the custom permissions that its scope allows', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('auditor')
  await page.getByRole('combobox', { name: 'Permissions' }).click()
  await page.getByRole('option', { name: 'Custom' }).click()
  const create = dialog.getByRole('button', { name: 'Create key' })
  await expect(create).toBeDisabled()
  const custom = dialog.getByRole('group', { name: 'Custom permissions' })
  await custom.getByLabel('Send events').check()
  await expect(custom.getByLabel('Audit log')).toBeDisabled()
  await dialog.getByLabel('Company').check()
  await expect(custom.getByLabel('Send events')).toBeDisabled()
  await expect(create).toBeDisabled()
  await custom.getByLabel('Read events').check()
  await custom.getByLabel('Audit log').check()
  await create.click()
  const key = await dialog.getByTestId('secret').innerText()
  await expect(dialog).toContainText('Read events with it')
  const { json } = await annals.call('GET', '/v1/keys/status', { key })
  expect(json.permissions).toEqual(['events:read', 'audit'])
  await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
  const row = page.getByRole('row', { name: /auditor/ })
  await expect(row).toContainText('Read events, audit log')
})

browserTest(
  'a new key or webhook belongs to the current workspace, or to one that the member must choose',
  async () => {
    const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    const dialog = page.getByRole('dialog')
    const choice = dialog.getByRole('combobox', { name: 'Workspace' })
    const makers = [
      ['Keys', 'Create key', 'Name', 'billing'],
      ['Webhooks', 'Create webhook', 'URL', 'https://example.com/annals'],
    ] as const
    await page.goto('/app/keys')
    for (const current of ['All workspaces', 'Staging']) {
      await page.getByRole('combobox', { name: 'Workspace' }).selectOption(current)
      for (const [link, action, label, text] of makers) {
        await page.getByRole('navigation', { name: 'Main', exact: true }).getByText(link).click()
        await page.getByRole('button', { name: action }).first().click()
        await dialog.getByLabel(label).fill(text)
        const create = dialog.getByRole('button', { name: action })
        if (current === 'Staging') {
          await expect(choice).toHaveValue('Staging')
          await expect(create).toBeEnabled()
        } else {
          await expect(choice).toHaveValue('')
          await expect(create).toBeDisabled()
        }
        await dialog.getByRole('button', { name: 'Cancel' }).click()
        await expect(dialog).toHaveCount(0)
      }
    }
  },
)

browserTest('a new key can be read and copied on a phone', async () => {
  const member = await signInAs(annals, await annals.createCompany(), 'ADMIN')
  const page = await open({ member, context: { viewport: PHONE } })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Create key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('phone')
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const copying = dialog.getByRole('button', { name: /^Copy/ })
  await expect(copying).toHaveCount(2)
  for (const part of [...(await copying.all()), dialog.getByTestId('secret')]) {
    const box = await part.boundingBox()
    assert(box && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box))
  }
})

browserTest(
  'the old and the new key both work after a rotation, until the old one is revoked',
  async () => {
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/keys')
    await page.getByRole('button', { name: 'Actions for Production key' }).click()
    await page.getByRole('menuitem', { name: 'Rotate key' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog).toContainText('Keep the old key working for 24 hours')
    await dialog.getByRole('button', { name: 'Rotate key' }).click()
    const next = await dialog.getByTestId('secret').innerText()
    const prefix = company.workspaceKey.slice(0, 13)
    await expect(dialog).toContainText(`Replace ${prefix}`)
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
    expect(await send(next)).toBe(201)
    expect(await send(company.workspaceKey)).toBe(201)
    await page.getByRole('link', { name: 'Workspaces' }).click()
    await expect(page.getByRole('region', { name: 'Production' })).toContainText(
      '1 active key · 1 rotating key',
    )
    await expect(page.getByRole('combobox', { name: 'Workspace' })).toHaveCount(0)
    await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
    await expect(page.getByRole('combobox', { name: 'Workspace' })).toBeVisible()
    const replaced = page.getByRole('row', { name: /Rotating/ })
    await replaced.getByRole('button', { name: /^Actions/ }).click()
    await page.getByRole('menuitem', { name: 'Revoke key' }).click()
    await expect(dialog).toContainText(`This permanently revokes ${prefix}`)
    await expect(dialog).toContainText('(rotating)')
    await expect(dialog.getByRole('button', { name: 'Revoke key' })).toBeDisabled()
    await dialog.getByLabel(/to confirm$/).fill('Production key')
    await dialog.getByRole('button', { name: 'Revoke key' }).click()
    await expect(replaced).toHaveCount(0)
    await eventually(async () => expect(await send(company.workspaceKey)).toBe(401))
    expect(await send(next)).toBe(201)
  },
)

browserTest(
  'the new key of a rotation without a grace period stays visible until it is copied',
  async () => {
    const page = await open({
      member: await signInAs(annals, await annals.createCompany(), 'ADMIN'),
    })
    await page.goto('/app/keys')
    await page.getByRole('button', { name: 'Actions for Production key' }).click()
    await page.getByRole('menuitem', { name: 'Rotate key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('slider').press('Home')
    await dialog.getByRole('button', { name: 'Rotate key' }).click()
    await expect(dialog).toContainText('The old key no longer works')
    expect(await send(await dialog.getByTestId('secret').innerText())).toBe(201)
    await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
    await expect(dialog).toHaveCount(0)
    await expect(page.getByRole('row', { name: /Production key/ })).toHaveCount(1)
  },
)

browserTest('“Check access” names the check that fails', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys?tab=check')
  await page.getByRole('combobox', { name: 'Key', exact: true }).click()
  await page.getByRole('option', { name: /^Company key/ }).click()
  await page.getByRole('button', { name: 'Check access' }).click()
  const result = page.getByRole('region', { name: 'Result' })
  await expect(result.getByRole('status')).toContainText('Denied: Company key can’t send an event')
  await expect(result.getByRole('listitem').filter({ hasText: 'Scope: failed' })).toBeVisible()
})

browserTest(
  'a key’s row shows the largest deduction from its health, and the allowlist offers to fix it once',
  async () => {
    const company = await annals.createCompany({ allowlist: [] })
    const member = await signInAs(annals, company, 'ADMIN')
    const page = await open({ member })
    await page.goto('/app/keys')
    const row = page.getByRole('row', { name: /Production key/ })
    const health = row.getByRole('button', { name: /^Health of Production key/ })
    await expect(health).toHaveText('75')
    // The other deduction is for never expiring, which costs fewer points.
    await expect(row).toContainText('The company has no IP allowlist. And 1 more.')
    await health.click()
    await expect(page.getByRole('listitem').filter({ hasText: /^−/ })).toHaveText([
      '−15 The company has no IP allowlist.',
      '−10 Never expires.',
    ])
    await page.getByRole('tab', { name: 'IP allowlist' }).click()
    const add = page.getByRole('button', { name: 'Add my address' })
    await expect(page.getByRole('combobox', { name: 'Workspace' })).toHaveCount(0)
    await add.click()
    await expect(add).toHaveCount(0)
    await page.getByRole('button', { name: 'Save allowlist' }).click()
    // The service stores the address as a range.
    await expect(page.getByLabel(/^IP addresses/)).toHaveValue('127.0.0.1/32')
    await expect(page.getByText('is on the list')).toBeVisible()
    await expect(add).toHaveCount(0)
  },
)

browserTest(
  'the allowlist applies to the dashboard only with the member’s own address',
  async () => {
    const company = await annals.createCompany({ allowlist: ['192.0.2.0/24'] })
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/keys?tab=allowlist')
    const save = page.getByRole('button', { name: 'Save allowlist' })
    const forDashboard = page.getByRole('switch', { name: 'Apply to the dashboard' })
    await forDashboard.click()
    await save.click()
    await expect(page.getByText('you could no longer use the dashboard')).toBeVisible()
    await expect(page.getByRole('button', { name: 'Save without my address' })).toHaveCount(0)
    await page.getByRole('button', { name: 'Add my address' }).click()
    await save.click()
    await expect(page.getByText('Saved. Takes effect within two seconds.')).toBeVisible()
    await page.reload()
    await expect(forDashboard).toBeChecked()
  },
)

browserTest(
  'the menu button of a row has the same contrast as the secondary text, in both themes',
  async () => {
    const page = await open({
      member: await signInAs(annals, await annals.createCompany(), 'ADMIN'),
    })
    await page.goto('/app/keys')
    const menu = page.getByRole('button', { name: 'Actions for Production key' })
    const words = page.getByRole('columnheader', { name: 'Name' })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      // The page follows the theme a moment later.
      await expect(async () => {
        const color = await words.evaluate((element) => getComputedStyle(element).color)
        expect(await menu.evaluate((element) => getComputedStyle(element).color)).toBe(color)
      }).toPass({ timeout: TIMEOUT_MS })
    }
  },
)
