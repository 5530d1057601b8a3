import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { signInAs } from '../../../server/test/harness/dashboard.ts'
import { startReceiver } from '../../../server/test/harness/receiver.ts'
import { ANY_DESTINATION } from '../../../server/test/harness/webhooks.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'

const { annals, open, promise } = await startDashboard({ env: ANY_DESTINATION })

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

promise(
  'a webhook made in the page delivers, signed with the secret that was shown, and the delivery is seen',
  async () => {
    await using receiver = await startReceiver()
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/webhooks')
    await expect(page.getByText('No webhooks yet')).toBeVisible()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Address').fill('ftp://example.com')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await expect(dialog.getByLabel('Address')).toHaveAccessibleDescription(
      /The address must be http or https\./,
    )
    await dialog.getByLabel('Address').fill(receiver.url)
    await dialog.getByRole('button', { name: 'Create' }).click()
    const secret = await dialog.getByTestId('secret').innerText()
    await page.keyboard.press('Escape')
    await expect(dialog.getByText('The key is the whole text, whsec_ included.')).toBeVisible()
    await expect(dialog.getByText('x-service-signature: v1=<hex>')).toBeVisible()
    await dialog.getByRole('button', { name: 'I have copied it' }).click()

    await send(company.workspaceKey, 'invoice.paid')
    const [request] = await receiver.waitFor(1)
    const signed = createHmac('sha256', secret)
      .update(request?.body ?? '')
      .digest('hex')
    expect(request?.headers['x-service-signature']).toBe(`v1=${signed}`)

    await page.getByRole('link', { name: receiver.url }).click()
    await page
      .getByRole('listitem')
      .getByRole('button', { name: /Delivered/ })
      .click()
    const delivery = page.getByRole('dialog', { name: 'Delivery' })
    await expect(delivery).toContainText('invoice.paid')
    await expect(delivery).toContainText('Attempt 1')
    await page.keyboard.press('Escape')
    await expect(delivery).toHaveCount(0)
    await expect(
      page.getByRole('listitem').getByRole('button', { name: /Delivered/ }),
    ).toBeFocused()

    await page.goto('/app/explorer')
    await openEvent(page, 'invoice.paid')
    const deliveries = page.getByRole('region', { name: 'Deliveries' })
    await expect(deliveries).toContainText('Delivered')
    await expect(deliveries.getByRole('link', { name: receiver.url })).toBeVisible()
  },
)

promise(
  'a delivery that failed is shown with the receiver’s answer, and is sent again by a click',
  async () => {
    await using receiver = await startReceiver({ status: 400, body: 'I do not know this event' })
    const { company, admin, made } = await makeWebhook(receiver.url)
    await send(company.workspaceKey, 'invoice.lost')
    await receiver.waitFor(1)
    const page = await open({ member: admin })
    await page.goto(`/app/webhooks/${made.json.id}`)
    await page
      .getByRole('listitem')
      .getByRole('button', { name: /Failed|retried/ })
      .click()
    const delivery = page.getByRole('dialog', { name: 'Delivery' })
    await expect(delivery).toContainText('I do not know this event')
    receiver.answer({ status: 200 })
    await delivery.getByRole('button', { name: 'Send again' }).click()
    await receiver.waitFor(2)
    await expect(delivery).toContainText('Delivered')
  },
)

promise(
  'a webhook is disabled after its consequence was read, and says why it sends nothing',
  async () => {
    await using receiver = await startReceiver()
    const { admin, made } = await makeWebhook(receiver.url)
    const page = await open({ member: admin })
    await page.goto(`/app/webhooks/${made.json.id}`)
    await page.getByRole('button', { name: 'Disable' }).click()
    const dialog = page.getByRole('dialog')
    await expect(dialog).toContainText('deliveries that wait end as failed')
    await dialog.getByRole('button', { name: 'Disable it' }).click()
    await expect(dialog).toHaveCount(0)
    const test = page.getByRole('button', { name: 'Send a test' })
    await expect(test).toBeDisabled()
    await expect(test).toHaveAccessibleDescription('This webhook is disabled. Enable it first.')
    await page.getByRole('button', { name: 'Enable' }).click()
    await expect(test).toBeEnabled()
  },
)

promise('a test says how it ended, and the numbers above the list follow', async () => {
  await using receiver = await startReceiver()
  const { admin, made } = await makeWebhook(receiver.url)
  const page = await open({ member: admin })
  await page.goto('/app/webhooks')
  await expect(page.getByRole('link', { name: receiver.url })).toContainText('Nothing sent yet')
  await page.goto(`/app/webhooks/${made.json.id}`)
  await page.getByRole('button', { name: 'Send a test' }).click()
  await expect(page.getByText('Test delivered, 200.')).toBeVisible()
  await expect(page.getByText(/100 % delivered in 24 hours · median/)).toBeVisible()
  const said = page.getByRole('status').filter({ hasText: 'Test' })
  const deliveredColor = await said.locator('span').first().evaluate(colorOf)
  receiver.answer({ status: 500 })
  await page.getByRole('button', { name: 'Send a test' }).click()
  await expect(said).toHaveText('Test failed, 500. It will be retried.')
  assert.notEqual(await said.locator('span').first().evaluate(colorOf), deliveredColor)
})

function colorOf(element: Element): string {
  return getComputedStyle(element).color
}

promise(
  'a webhook whose deliveries all fail says that none was delivered, and in which time',
  async () => {
    await using receiver = await startReceiver({ status: 500 })
    const { company, admin, made } = await makeWebhook(receiver.url)
    for (const action of ['a.first', 'a.second', 'a.third']) {
      await send(company.workspaceKey, action)
    }
    await receiver.waitFor(3)
    const page = await open({ member: admin })
    await page.goto('/app/webhooks')
    await expect(page.getByRole('link', { name: receiver.url })).toContainText(
      'None of 3 delivered in 24 hours',
    )
    await page.goto(`/app/webhooks/${made.json.id}`)
    await expect(page.getByText('None of 3 delivered in 24 hours · 3 open')).toBeVisible()
  },
)

promise('a link to a webhook or a delivery that is not there says so and leads on', async () => {
  await using receiver = await startReceiver()
  const { admin, made } = await makeWebhook(receiver.url)
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${made.json.id}?delivery=${randomUUID()}`)
  const delivery = page.getByRole('dialog', { name: 'Delivery' })
  await expect(delivery).toContainText('There is no such delivery')
  for (const unknown of ['zzz', randomUUID()]) {
    await page.goto(`/app/webhooks/${unknown}`)
    await expect(page.getByRole('heading', { name: 'No such webhook' })).toBeVisible()
    await expect(page.getByText('There is no such webhook, or you may not see it.')).toBeVisible()
  }
  await page.getByRole('link', { name: 'All webhooks' }).click()
  await expect(page.getByRole('link', { name: receiver.url })).toBeVisible()
})

promise(
  'the result of a signature check comes below its button, which stays in place',
  async () => {
    await using receiver = await startReceiver()
    const { admin, made } = await makeWebhook(receiver.url)
    const page = await open({ member: admin })
    await page.goto(`/app/webhooks/${made.json.id}?tab=signature`)
    await page.getByLabel('Body').fill('{}')
    await page.getByRole('textbox', { name: 'Signature' }).fill('v1=00')
    const check = page.getByRole('button', { name: 'Check' })
    const before = await check.boundingBox()
    await check.click()
    await expect(page.getByRole('status').filter({ hasText: 'It does not fit' })).toBeVisible()
    assert.deepEqual(await check.boundingBox(), before)
  },
)

promise('whoever may not create webhooks is told who does, without a recipe', async () => {
  const company = await annals.createCompany()
  const page = await open({
    member: await signInAs(annals, company, 'ANALYST', [company.workspace.id]),
  })
  await page.goto('/app/webhooks')
  await expect(page.getByText('Owners and admins create them.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'New webhook' })).toHaveCount(0)
  await expect(page.getByText('npm start')).toHaveCount(0)
})

promise('a state without recent deliveries offers to search the older ones', async () => {
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
  await expect(page.getByText('None among the newest deliveries')).toBeVisible()
  await page.getByRole('button', { name: 'Show older deliveries' }).click()
  await expect(page.getByText('None in this state')).toBeVisible()
})
