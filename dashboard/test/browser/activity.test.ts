import { createServiceAudit } from '../../../server/src/intake/audit-entry.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { makeExport } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { violationsOf } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

browserTest(
  'activity shows members, keys and Annals itself, and can be filtered by each and by subject',
  async () => {
    const company = await annals.createCompany()
    const owner = await signInAs(annals, company, 'OWNER')
    await owner.call('PATCH', '/dashboard/company', { body: { name: 'Acme Corporation' } })
    await makeExport(annals, company.companyKey)
    const metadata = {
      url: 'https://receiver.example',
      reason: 'The receiver responded with 410 Gone.',
    }
    const { id } = company.company
    await annals.app.database.db.transaction().execute((trx) =>
      createServiceAudit(Date.now)(trx, id, [
        { action: 'WEBHOOK_DISABLED', resource: { type: 'webhook', id }, metadata },
        { action: 'ARCHIVE_FAILED', metadata: { workspaceIds: [company.workspace.id] } },
      ]),
    )
    const page = await open({ member: owner })
    await page.goto('/app/company/activity')
    const rows = page.getByRole('table', { name: 'Activity, newest first' }).locator('tbody tr')
    await expect(rows).toHaveCount(4)
    await expect(page.getByRole('columnheader', { name: 'Time (Berlin)' })).toBeVisible()
    await expect(rows.nth(0)).toContainText('Annals could not archive events of Production')
    await expect(rows.nth(1)).toContainText(
      'Annals disabled the webhook https://receiver.example: The receiver responded with 410 Gone.',
    )
    await expect(rows.nth(2)).toContainText(/^Key .* requested a JSONL export/)
    await expect(rows.nth(3)).toContainText('renamed the company from Acme to Acme Corporation')

    const choose = async (filter: string, option: string) => {
      await page.getByRole('combobox', { name: filter }).click()
      await page.getByRole('option', { name: option, exact: true }).click()
    }
    await choose('Actor', 'Annals')
    await expect(rows).toHaveCount(2)
    await choose('Subject', 'Webhooks')
    await expect(rows).toHaveCount(1)
    await expect(page).toHaveURL(/activity\?subject=webhook&actor=annals$/)
    await choose('Subject', 'Keys')
    await expect(page.getByText('No activity matches these filters.')).toBeVisible()
    await choose('Subject', 'All subjects')
    await choose('Actor', 'All actors')
    await choose('Source', 'API')
    await expect(rows).toHaveCount(1)
    await choose('Source', 'Dashboard and API')
    await choose('Actor', owner.email)
    await choose('Time', 'Last hour')
    await expect(rows).toHaveCount(1)
    await page.reload()
    await expect(rows).toHaveCount(1)
    await expect(rows.first()).toContainText(owner.email)
    expect(await violationsOf(page)).toEqual([])
  },
)
