import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { startReceiver } from '../../../server/test/harness/webhook/receiver.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { waitUntilSettled } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

async function send(key: string, action: string): Promise<void> {
  const { status } = await annals.call('POST', '/v1/events', {
    key,
    body: { category: 'c', action },
  })
  expect(status).toBe(201)
}

/** Creates a webhook in a new company, as its admin. */
async function makeWebhook(url: string) {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  const body = { workspaceId: company.workspace.id, url }
  return { company, admin, made: await admin.call('POST', '/dashboard/webhooks', { body }) }
}

browserTest(
  'a new webhook sends deliveries signed with the secret that was shown, and lists them',
  async () => {
    await using receiver = await startReceiver()
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/webhooks')
    await expect(page.getByText('No webhooks yet')).toBeVisible()
    await page.getByRole('button', { name: 'Create webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('ftp://example.com')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await expect(dialog.getByLabel('URL')).toHaveAccessibleDescription(
      /The URL must be http or https\./,
    )
    await dialog.getByLabel('URL').fill(receiver.url)
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    const secret = await dialog.getByTestId('secret').innerText()
    await page.keyboard.press('Escape')
    await expect(
      dialog.getByText('Use the whole secret as the key, including whsec_.'),
    ).toBeVisible()
    await expect(dialog.getByText('x-service-signature: v1=<hex>')).toBeVisible()
    await dialog.getByRole('button', { name: 'I’ve copied it' }).click()

    await send(company.workspaceKey, 'invoice.paid')
    const [request] = await receiver.waitFor(1)
    const signed = createHmac('sha256', secret)
      .update(request?.body ?? '')
      .digest('hex')
    expect(request?.headers['x-service-signature']).toBe(`v1=${signed}`)

    await page.getByRole('link', { name: receiver.url }).click()
    await page
      .getByRole('listitem')
      .getByRole('button', { name: /Succeeded/ })
      .click()
    const delivery = page.getByRole('dialog', { name: 'Delivery' })
    await expect(delivery).toContainText('invoice.paid')
    await expect(delivery).toContainText('Attempt 1')
    await page.keyboard.press('Escape')
    await expect(delivery).toHaveCount(0)
    await expect(
      page.getByRole('listitem').getByRole('button', { name: /Succeeded/ }),
    ).toBeFocused()

    await page.goto('/app/explorer')
    await openEvent(page, 'invoice.paid')
    const deliveries = page.getByRole('region', { name: 'Deliveries' })
    await expect(deliveries).toContainText('Succeeded')
    await expect(deliveries.getByRole('link', { name: receiver.url })).toBeVisible()
  },
)

browserTest('a webhook is created and changed with a name, a filter and headers', async () => {
  await using receiver = await startReceiver()
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
  await page.goto('/app/webhooks')
  await page.getByRole('button', { name: 'Create webhook' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('URL').fill(receiver.url)
  await dialog.getByLabel('Name').fill('Invoices')
  await dialog.getByLabel('Actions').fill('invoice.*\n\ninvoice.*\n')
  await dialog.getByRole('button', { name: 'Add header' }).click()
  await dialog.getByRole('textbox', { name: 'Header' }).fill('host')
  await dialog.getByRole('textbox', { name: 'Value' }).fill('letmein')
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  await expect(dialog.getByRole('alert')).toContainText('/headers/host is reserved')
  await dialog.getByRole('textbox', { name: 'Header' }).fill('X-Token')
  await dialog.getByRole('button', { name: 'Create webhook' }).click()
  await dialog.getByRole('button', { name: 'I’ve copied it' }).click()
  await send(company.workspaceKey, 'user.login')
  await send(company.workspaceKey, 'invoice.paid')
  const [request] = await receiver.waitFor(1)
  expect(request?.headers['x-token']).toBe('letmein')
  expect(JSON.parse(String(request?.body)).action).toBe('invoice.paid')

  await page.getByRole('link', { name: 'Invoices' }).click()
  await expect(page.getByRole('heading', { name: 'Invoices' })).toBeVisible()
  await expect(page.getByText(`${receiver.url} · Workspace: Production`)).toBeVisible()
  await expect(page.getByRole('combobox', { name: 'Workspace' })).toHaveCount(0)
  await expect(
    page.getByText('Actions: invoice.* · 1 event left out · Headers: X-Token'),
  ).toBeVisible()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByLabel('Actions').fill('')
  await page.getByLabel('Categories').fill('c')
  await page.getByRole('button', { name: 'Save filter' }).click()
  await expect(page.getByText('Categories: c ·')).toBeVisible()
  await expect(page.getByText('Saving replaces all of them')).toBeVisible()
  await page.getByRole('button', { name: 'Add header' }).click()
  await page.getByRole('textbox', { name: 'Header' }).fill('Authorization')
  await page.getByRole('textbox', { name: 'Value' }).fill('Bearer second')
  await page.getByRole('button', { name: 'Save headers' }).click()
  await expect(page.getByText('Current headers: Authorization.')).toBeVisible()
  await send(company.workspaceKey, 'user.login')
  const [, second] = await receiver.waitFor(2)
  expect(second?.headers['authorization']).toBe('Bearer second')
  expect(second?.headers['x-token']).toBe(undefined)

  await page.getByLabel('URL').fill('http://127.0.0.1:9/elsewhere')
  await expect(page.getByText('saving removes the extra headers')).toBeVisible()
  await page.getByLabel('Name').fill('')
  await page.getByRole('button', { name: 'Save settings' }).click()
  await expect(page.getByRole('heading', { name: 'http://127.0.0.1:9/elsewhere' })).toBeVisible()
  await expect(page.getByText('There are no extra headers.')).toBeVisible()
})

browserTest('a signing secret is rotated only after a confirmation', async () => {
  const { admin, made } = await makeWebhook('https://example.com/annals')
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${made.json.id}?tab=settings`)
  const rotate = page.getByRole('button', { name: 'Rotate secret' })
  const dialog = page.getByRole('dialog')
  await rotate.click()
  await expect(dialog).toContainText('After 24 hours, it signs deliveries only with the new secret')
  await dialog.getByRole('button', { name: 'Go back' }).click()
  await expect(dialog).toHaveCount(0)
  await page.getByLabel(/^Keep accepting the old secret/).fill('0')
  await rotate.click()
  await expect(dialog).toContainText('Immediately, it signs deliveries only with the new secret')
  await expect(page.getByTestId('secret')).toHaveCount(0)
  await dialog.getByRole('button', { name: 'Rotate secret' }).click()
  await expect(page.getByTestId('secret')).toHaveText(/^whsec_/)
  await expect(dialog).toHaveCount(0)
})

browserTest('a failed delivery shows the receiver’s response and can be redelivered', async () => {
  await using receiver = await startReceiver({ status: 400, body: 'I do not know this event' })
  const { company, admin, made } = await makeWebhook(receiver.url)
  await send(company.workspaceKey, 'invoice.lost')
  await receiver.waitFor(1)
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${made.json.id}`)
  await page
    .getByRole('listitem')
    .getByRole('button', { name: /Failed|Retry scheduled/ })
    .click()
  const delivery = page.getByRole('dialog', { name: 'Delivery' })
  await expect(delivery).toContainText('I do not know this event')
  receiver.respondWith({ status: 200 })
  await delivery.getByRole('button', { name: 'Redeliver event' }).click()
  await receiver.waitFor(2)
  await expect(delivery).toContainText('Succeeded')
})

browserTest(
  'disabling a webhook asks for confirmation and then explains why nothing can be sent',
  async () => {
    await using receiver = await startReceiver()
    const { admin, made } = await makeWebhook(receiver.url)
    const page = await open({ member: admin })
    await page.goto(`/app/webhooks/${made.json.id}`)
    await page.getByRole('button', { name: 'Disable webhook' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog).toContainText('pending deliveries fail')
    await dialog.getByRole('button', { name: 'Disable webhook' }).click()
    await expect(dialog).toHaveCount(0)
    const test = page.getByRole('button', { name: 'Send test' })
    await expect(test).toBeDisabled()
    await expect(test).toHaveAccessibleDescription('This webhook is disabled. Enable it first.')
    await page.getByRole('button', { name: 'Enable webhook' }).click()
    await expect(test).toBeEnabled()
  },
)

browserTest('a test delivery shows its result, and the health summary is updated', async () => {
  await using receiver = await startReceiver()
  const { admin, made } = await makeWebhook(receiver.url)
  const page = await open({ member: admin })
  await page.goto('/app/webhooks')
  await expect(page.getByRole('link', { name: receiver.url })).toContainText('No deliveries yet')
  await page.goto(`/app/webhooks/${made.json.id}`)
  await page.getByRole('button', { name: 'Send test' }).click()
  await expect(page.getByText('Test succeeded, 200')).toBeVisible()
  await expect(page.getByText('Healthy', { exact: true })).toBeVisible()
  await expect(page.getByText(/24 hours: 100% of 1 delivered · median/)).toBeVisible()
  const said = page.getByRole('status').filter({ hasText: 'Test' })
  const deliveredColor = await said.locator('span').first().evaluate(colorOf)
  receiver.respondWith({ status: 500 })
  await page.getByRole('button', { name: 'Send test' }).click()
  await expect(said).toHaveText('Test failed, 500, retry scheduled')
  await expect(page.getByText('Failing', { exact: true })).toBeVisible()
  await expect(page.getByText(/Last hour: 50% of 2 delivered · 24 hours: 50%/)).toBeVisible()
  assert.notEqual(await said.locator('span').first().evaluate(colorOf), deliveredColor)
})

function colorOf(element: Element): string {
  return getComputedStyle(element).color
}

browserTest(
  'a webhook whose deliveries all fail is shown as failing, with the numbers',
  async () => {
    await using receiver = await startReceiver({ status: 500 })
    const { company, admin, made } = await makeWebhook(receiver.url)
    for (const action of ['a.first', 'a.second', 'a.third']) {
      await send(company.workspaceKey, action)
    }
    await receiver.waitFor(3)
    const page = await open({ member: admin })
    await page.goto('/app/webhooks')
    const row = page.getByRole('link', { name: receiver.url })
    await expect(row).toContainText('Failing')
    await expect(row).toContainText('24 hours: 0% of 3 delivered')
    await page.goto(`/app/webhooks/${made.json.id}`)
    await expect(
      page.getByText('Last hour: 0% of 3 delivered · 24 hours: 0% of 3 delivered · 3 open'),
    ).toBeVisible()
  },
)

browserTest('a link to a missing webhook or delivery says so and links to the list', async () => {
  await using receiver = await startReceiver()
  const { admin, made } = await makeWebhook(receiver.url)
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${made.json.id}?delivery=${randomUUID()}`)
  const delivery = page.getByRole('dialog', { name: 'Delivery' })
  await expect(delivery).toContainText('Delivery not found')
  for (const unknown of ['zzz', randomUUID()]) {
    await page.goto(`/app/webhooks/${unknown}`)
    await expect(page.getByRole('heading', { name: 'Webhook not found' })).toBeVisible()
    await expect(page.getByText('The webhook may have been deleted')).toBeVisible()
  }
  await page.getByRole('link', { name: 'All webhooks' }).click()
  await expect(page.getByRole('link', { name: receiver.url })).toBeVisible()
})

browserTest(
  'the result of a signature check appears below the button without moving it',
  async () => {
    await using receiver = await startReceiver()
    const { admin, made } = await makeWebhook(receiver.url)
    const page = await open({ member: admin })
    await page.goto(`/app/webhooks/${made.json.id}?tab=signature`)
    await page.getByLabel('Body').fill('{}')
    await page.getByRole('textbox', { name: 'Signature' }).fill('v1=00')
    const check = page.getByRole('button', { name: 'Check signature' })
    await waitUntilSettled(page)
    const before = await check.boundingBox()
    await check.click()
    await expect(
      page.getByRole('status').filter({ hasText: 'Signature does not match' }),
    ).toBeVisible()
    assert.deepEqual(await check.boundingBox(), before)
  },
)

browserTest(
  'a member who can’t create webhooks sees who can, and no setup instructions',
  async () => {
    const company = await annals.createCompany()
    const page = await open({
      member: await signInAs(annals, company, 'ANALYST', [company.workspace.id]),
    })
    await page.goto('/app/webhooks')
    await expect(page.getByText('Owners and admins can create webhooks.')).toBeVisible()
    await expect(page.getByRole('button', { name: 'Create webhook' })).toHaveCount(0)
    await expect(page.getByText('npm start')).toHaveCount(0)
  },
)

browserTest('a status without recent deliveries offers to search older ones', async () => {
  const { admin, made } = await makeWebhook('http://127.0.0.1:1/')
  const page = await open({ member: admin })
  const { id } = made.json
  await page.route(
    ({ pathname }) => pathname === `/dashboard/webhooks/${id}/deliveries`,
    async (route) => {
      const isFirst = !route.request().url().includes('cursor=')
      await route.fulfill({ json: { data: [], nextCursor: isFirst ? 'next' : null } })
    },
  )
  await page.goto(`/app/webhooks/${id}?status=SUCCEEDED`)
  await expect(page.getByText('No matches among the newest deliveries')).toBeVisible()
  await page.getByRole('button', { name: 'Show older deliveries' }).click()
  await expect(page.getByText('No matching deliveries')).toBeVisible()
})
