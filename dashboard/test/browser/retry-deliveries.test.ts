import { query } from '../../../server/test/harness/database/engine.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { eventually } from '../../../server/test/harness/timing/eventually.ts'
import { type Receiver, startReceiver } from '../../../server/test/harness/webhook/receiver.ts'
import { clickBudget } from './click-budget.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

/** A webhook with two deliveries that failed and one that waits hours for its retry. */
async function createFailing(receiver: Receiver) {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  const made = await admin.call('POST', '/dashboard/webhooks', {
    body: { workspaceId: company.workspace.id, url: receiver.url },
  })
  const events = ['invoice.paid', 'invoice.deleted', 'user.login'].map((action) => ({
    category: 'c',
    action,
    actor: { email: 'ana@acme.example' },
  }))
  await annals.call('POST', '/v1/events/batch', { key: company.workspaceKey, body: { events } })
  const id = String(made.json.id)
  await eventually(async () => {
    const { json } = await admin.call('GET', `/dashboard/webhooks/${id}/deliveries`)
    const statuses = json.data.map(({ status }: { status: string }) => status)
    expect(statuses).toEqual(['RETRY_SCHEDULED', 'RETRY_SCHEDULED', 'RETRY_SCHEDULED'])
  })
  await query(
    annals.database.connection,
    `update webhook_delivery
        set status = case when sequence = 3 then status else 'FAILED' end,
            due_at = now() + interval '190 minutes'
      where webhook_id = '${id}'`,
  )
  await query(annals.database.connection, `update webhook set open_count = 1 where id = '${id}'`)
  return { company, admin, id }
}

browserTest('why deliveries failed, and resending them all, takes four clicks', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { admin } = await createFailing(receiver)
  receiver.respondWith({ status: 200 })
  const page = await open({ member: admin })
  await page.goto('/app/webhooks')
  const click = clickBudget(4)
  await click(page.getByRole('link', { name: receiver.url }))
  const rows = page.getByRole('list', { name: 'Deliveries, newest first' }).getByRole('listitem')
  await expect(rows).toHaveText([
    /Retry scheduleduser\.login · ana@acme\.example503 · .*in 3 hours/,
    /Failedinvoice\.deleted · ana@acme\.example503 · .*–/,
    /Failedinvoice\.paid · ana@acme\.example503 · .*–/,
  ])
  await click(page.getByRole('button', { name: 'Retry all now' }))
  const dialog = page.getByRole('dialog', { name: 'Retry deliveries now' })
  await expect(dialog).toContainText('2 failed, 1 waiting for a retry')
  await expect(dialog.getByRole('listitem')).toHaveText(['503: 3 deliveries'])
  await click(dialog.getByRole('button', { name: 'Retry 3 deliveries' }))
  await expect(dialog.getByRole('status')).toHaveText('3 deliveries queued')
  await receiver.waitFor(6)
  await click(dialog.getByRole('button', { name: 'Close' }).last())
  await expect(rows.filter({ hasText: 'Succeeded' })).toHaveCount(3)
})

browserTest('the filter limits a retry, and the result says what could not be queued', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { admin, id } = await createFailing(receiver)
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${id}?status=SUCCEEDED`)
  const retry = page.getByRole('button', { name: 'Retry all now' })
  await expect(retry).toBeDisabled()
  await expect(retry).toHaveAccessibleDescription(/^These deliveries succeeded/)
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Failed').click()
  await retry.click()
  const dialog = page.getByRole('dialog', { name: 'Retry deliveries now' })
  await expect(dialog).toContainText('2 failed.')
  // One of them changes while the dialog is open, and the event of the other is archived.
  await query(
    annals.database.connection,
    `update webhook_delivery
        set event_seq = case when sequence = 1 then 1000 else event_seq end,
            updated_at = case when sequence = 2 then now() + interval '1 minute' else updated_at end
      where webhook_id = '${id}' and status = 'FAILED'`,
  )
  await dialog.getByRole('button', { name: 'Retry 2 deliveries' }).click()
  const result = dialog.getByRole('status')
  await expect(result).toContainText('0 deliveries queued')
  await expect(result).toContainText('1 delivery can’t be sent again')
  await expect(result).toContainText('1 delivery changed since the preview and was left alone.')
})

browserTest('completeness shows missing deliveries and the time zone', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { admin, id } = await createFailing(receiver)
  const page = await open({ member: admin })
  await page.goto('/app/integrity')
  const section = page.getByRole('region', { name: 'Completeness' })
  await expect(section).toContainText('by the time Annals received them (Berlin)')
  const gap = section.getByRole('listitem').filter({ hasText: receiver.url })
  await expect(gap).toContainText('Failing')
  await expect(gap).toContainText('24 hours: 0% of 3 delivered · 1 open')
  await gap.getByRole('link').click()
  await expect(page).toHaveURL(`${annals.url}/app/webhooks/${id}`)
  await expect(page.getByText('Created (Berlin)')).toBeVisible()
})

browserTest('a delivery that should have been sent by now is shown as overdue', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { admin, id } = await createFailing(receiver)
  const page = await open({ member: admin, context: {} })
  // Its retry is due in 190 minutes.
  await page.clock.setFixedTime(Date.now() + 240 * 60_000)
  await page.goto(`/app/webhooks/${id}?status=RETRY_SCHEDULED`)
  const rows = page.getByRole('list', { name: 'Deliveries, newest first' }).getByRole('listitem')
  await expect(rows).toHaveText([/Retry scheduled.*overdue$/])
})

browserTest('a delivery links to its event', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { admin, id } = await createFailing(receiver)
  const page = await open({ member: admin })
  await page.goto(`/app/webhooks/${id}`)
  await page.getByRole('link', { name: 'Open event invoice.deleted' }).click()
  await expect(page.getByRole('heading', { name: 'invoice.deleted' })).toBeVisible()
  await page.goto(`/app/webhooks/${id}`)
  await page.getByRole('button', { name: /invoice\.paid/ }).click()
  await page.getByRole('dialog').getByRole('link', { name: 'Open event' }).click()
  await expect(page.getByRole('heading', { name: 'invoice.paid' })).toBeVisible()
})

browserTest('a member who can’t manage webhooks can’t retry deliveries, and sees why', async () => {
  await using receiver = await startReceiver({ status: 503 })
  const { company, id } = await createFailing(receiver)
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const page = await open({ member: viewer })
  await page.goto(`/app/webhooks/${id}`)
  const retry = page.getByRole('button', { name: 'Retry all now' })
  await expect(retry).toHaveAccessibleDescription('Your role (viewer) can’t retry deliveries.')
})
