import assert from 'node:assert/strict'
import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { eventually } from '../../../server/test/harness/eventually.ts'
import { expect, startDashboard } from './dashboard.ts'
import { PATIENCE_MS } from './visit.ts'

const { annals, open, promise } = await startDashboard()

async function send(key: string): Promise<number> {
  const body = { category: 'test', action: 'key.used' }
  return (await annals.call('POST', '/v1/events', { key, body })).status
}

promise('a key is shown once, works at once, and is listed with its use', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Create a key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('billing service')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await expect(dialog.getByText('it is not shown again')).toBeVisible()
  const secret = await dialog.getByTestId('secret').innerText()
  await expect(dialog.getByText(`Bearer ${secret}`)).toBeVisible()
  expect(await send(secret)).toBe(201)
  await dialog.getByRole('button', { name: 'I have copied it' }).click()
  await page.reload()
  const row = page.getByRole('row', { name: /billing service/ })
  await expect(row).toContainText('Active')
  await expect(page.locator('body')).not.toContainText(secret)
  await expect(async () => {
    await page.reload()
    await expect(row).toContainText('Active')
    expect(await row.innerText()).toContain('from 127.0.0.1')
  }).toPass({ timeout: PATIENCE_MS })
})

promise('a new key can be read and copied on a phone', async () => {
  const member = await signInAs(annals, await annals.createCompany(), 'ADMIN')
  const page = await open({ member })
  await page.setViewportSize({ width: 390, height: 844 })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Create a key' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('phone')
  await dialog.getByRole('button', { name: 'Create' }).click()
  const copying = dialog.getByRole('button', { name: /^Copy/ })
  await expect(copying).toHaveCount(2)
  for (const part of [...(await copying.all()), dialog.getByTestId('secret')]) {
    const box = await part.boundingBox()
    assert(box && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box))
  }
})

promise(
  'a rotated key and its successor both work, until the old one is revoked by name',
  async () => {
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/keys')
    await page.getByRole('button', { name: 'Actions for Production key' }).click()
    await page.getByRole('menuitem', { name: 'Rotate' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog).toContainText('works on for 24 hours')
    await dialog.getByRole('button', { name: 'Rotate' }).click()
    const next = await dialog.getByTestId('secret').innerText()
    const prefix = company.workspaceKey.slice(0, 13)
    await expect(dialog).toContainText(`Put it where ${prefix}`)
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    expect(await send(next)).toBe(201)
    expect(await send(company.workspaceKey)).toBe(201)
    const replaced = page.getByRole('row', { name: /Being replaced/ })
    await replaced.getByRole('button', { name: /^Actions/ }).click()
    await page.getByRole('menuitem', { name: 'Revoke' }).click()
    await expect(dialog).toContainText(`This ends ${prefix}`)
    await expect(dialog).toContainText('(being replaced)')
    await expect(dialog.getByRole('button', { name: 'Revoke' })).toBeDisabled()
    await dialog.getByLabel(/to go on$/).fill('Production key')
    await dialog.getByRole('button', { name: 'Revoke' }).click()
    await expect(replaced).toHaveCount(0)
    await eventually(async () => expect(await send(company.workspaceKey)).toBe(401))
    expect(await send(next)).toBe(201)
  },
)

promise('a key that replaces another at once is shown until it is copied', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys')
  await page.getByRole('button', { name: 'Actions for Production key' }).click()
  await page.getByRole('menuitem', { name: 'Rotate' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('slider').press('Home')
  await dialog.getByRole('button', { name: 'Rotate' }).click()
  await expect(dialog).toContainText('that one works no more')
  expect(await send(await dialog.getByTestId('secret').innerText())).toBe(201)
  await dialog.getByRole('button', { name: 'I have copied it' }).click()
  await expect(dialog).toHaveCount(0)
  await expect(page.getByRole('row', { name: /Production key/ })).toHaveCount(1)
})

promise('“may this key…?” names the gate that says no', async () => {
  const page = await open({ member: await signInAs(annals, await annals.createCompany(), 'ADMIN') })
  await page.goto('/app/keys?tab=check')
  await page.getByRole('combobox', { name: 'May the key' }).click()
  await page.getByRole('option', { name: /^Company key/ }).click()
  await page.getByRole('button', { name: 'Ask' }).click()
  const answer = page.getByRole('region', { name: 'The answer' })
  await expect(answer.getByRole('status')).toContainText('No: Company key may not send an event')
  await expect(answer.getByRole('listitem').filter({ hasText: 'Scope: no' })).toBeVisible()
})

promise(
  'a key’s row says what costs its health most, and how many reasons there are beside',
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
  },
)

promise(
  'the menu of a row is as easy to see as the soft words beside it, in both themes',
  async () => {
    const page = await open({
      member: await signInAs(annals, await annals.createCompany(), 'ADMIN'),
    })
    await page.goto('/app/keys')
    const menu = page.getByRole('button', { name: 'Actions for Production key' })
    const words = page.getByRole('columnheader', { name: 'Name' })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const color = await words.evaluate((element) => getComputedStyle(element).color)
      await expect(menu).toHaveCSS('color', color)
    }
  },
)
