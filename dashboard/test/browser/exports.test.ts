import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer as readBuffer, text as readText } from 'node:stream/consumers'
import type { CreatedCompany } from '../../../server/src/tenancy/create-company.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { readZip, type ZipEntry } from '../../../server/test/harness/export/zip-reader.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

const numberedEvent = (number: number) => ({ category: 'test', action: `test.${number}` })

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
  await page.getByRole('combobox', { name: 'Workspace' }).selectOption('Staging')
  await expect(jobs).toHaveCount(1)
  await expect(jobs).toContainText('from Staging')
})

browserTest('one click downloads a finished export again, with the same bytes', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [1, 2, 3].map(numberedEvent))
  const member = await signInAs(annals, company, 'ADMIN')
  const body = { name: 'All', source: 'HOT', format: 'CSV' }
  const { json } = await member.call('POST', '/dashboard/exports', { body })
  const { text } = await member.call('GET', `/dashboard/exports/${json.id}/download`)
  const page = await open({ member })
  await page.goto('/app/exports')
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download again' }).click()
  const download = await downloading
  expect(download.suggestedFilename()).toMatch(/^acme-production-all-until-[0-9TZ-]+\.csv$/)
  expect(await readText(await download.createReadStream())).toBe(text)
  await expect(page.getByRole('button', { name: 'Download again' })).toHaveCount(2)
  // A download that has sent one of three rows.
  await annals.app.database.db
    .updateTable('export_job')
    .set({ status: 'RUNNING', rows_exported: 1, finished_at: null })
    .where('id', '=', json.id)
    .execute()
  await page.reload()
  const bar = page.getByRole('progressbar', { name: 'Download progress' })
  await expect(bar).toHaveAttribute('value', '1')
  await expect(bar).toHaveAttribute('max', '3')
  await expect(page.getByRole('row').filter({ has: bar })).toContainText('1 of about 3 rows')
})

browserTest('an export has its name, and archived events require a time range', async () => {
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
  await page.goto('/app/exports')
  await page.getByRole('button', { name: 'Create export' }).first().click()
  const form = page.getByRole('dialog', { name: 'Create export' })
  const range = form.getByRole('combobox', { name: 'Time range' })
  const source = form.getByRole('radiogroup', { name: 'Source' })
  const create = form.getByRole('button', { name: 'Create export' })
  await source.getByText('Both').click()
  await expect(range).toHaveValue('All time')
  await expect(range).toHaveAccessibleDescription(/^Choose a time range/)
  await expect(create).toBeDisabled()
  await source.getByText('Hot').click()
  await expect(range).toHaveValue('All time')
  await expect(create).toBeEnabled()
  await range.click()
  await page.getByRole('option', { name: 'Last 7 days' }).click()
  await source.getByText('Both').click()
  await expect(range).toHaveValue('Last 7 days')
  await expect(create).toBeEnabled()
  await form.getByRole('textbox', { name: 'Name', exact: true }).fill('Week 12')
  await create.click()
  await form.getByRole('button', { name: 'Close' }).last().click()
  await expect(page.getByRole('cell', { name: /^Week 12.*JSONL, hot and archived/ })).toBeVisible()
})

browserTest('a template gets a schedule, and its stored export can be downloaded', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'ADMIN')
  const template = { name: 'Monthly review', body: { source: 'HOT', format: 'CSV' } }
  const { json } = await member.call('POST', '/dashboard/export-templates', { body: template })
  const page = await open({ member })
  await page.goto('/app/exports?tab=templates')
  await page.getByRole('button', { name: 'Actions for Monthly review' }).click()
  await page.getByRole('menuitem', { name: 'Schedule exports…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Schedule Monthly review' })
  await dialog.getByRole('radio', { name: 'Monthly' }).check()
  await dialog.getByRole('button', { name: 'Save schedule' }).click()
  await expect(page.getByRole('row').nth(1)).toContainText('Monthly export, next at')
  // The test takes the place of the worker, which waits for the end of the month.
  const { db } = annals.app.database
  const { json: job } = await member.call('POST', '/dashboard/exports', { body: template.body })
  const { text } = await member.call('GET', `/dashboard/exports/${job.id}/download`)
  await annals.app.archive.put(`exports/${company.company.id}/${job.id}/000001`, Buffer.from(text))
  await db
    .updateTable('export_job')
    .set({ template_id: json.id, cadence: 'MONTHLY', period_end: new Date(0) })
    .set({ stored_at: new Date(0), parts_max: 1 })
    .where('id', '=', job.id)
    .execute()
  await page.getByRole('tab', { name: 'Exports' }).click()
  await expect(page.getByRole('row').nth(1)).toContainText('Monthly schedule')
  await expect(page.getByRole('row').nth(1)).toContainText('stored for 90 days')
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download' }).click()
  expect(await readText(await (await downloading).createReadStream())).toBe(text)
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

browserTest(
  'a member proves that nothing is missing, and learns which filters prevent it',
  async () => {
    const company = await annals.createCompany()
    const event = { category: 'auth', action: 'login', actor: { id: 'ana' } }
    await storeEvents(annals, company.workspaceKey, [event, ...[1, 2].map(numberedEvent)])
    const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
    await page.goto('/app/exports')
    await page.getByRole('button', { name: 'Create export' }).first().click()
    const form = page.getByRole('dialog', { name: 'Create export' })
    const proof = form.getByRole('switch', { name: 'Prove that nothing is missing' })
    const size = form.getByRole('region', { name: 'Estimated size' })
    await form.getByText('CSV', { exact: true }).click()
    await expect(proof).toBeHidden()
    await form.getByText('JSONL', { exact: true }).click()
    await form.getByRole('button', { name: 'Add filter' }).click()
    const field = form.getByRole('combobox', { name: 'Filter 1 field' })
    const choose = async (name: string, value: string) => {
      await field.click()
      await page.getByRole('option', { name, exact: true }).click()
      await form.getByRole('combobox', { name, exact: true }).fill(value)
    }
    await choose('category', 'auth')
    await proof.click()
    await expect(size).toContainText('1 row and 2 stubs')
    await choose('actor ID', 'ana')
    await expect(size).toContainText('These filters can’t prove that nothing is missing.')
    await expect(size).toContainText('1 row, about')
    await form.getByRole('button', { name: 'Create export' }).click()
    await form.getByRole('button', { name: 'Close' }).last().click()
    await expect(page.getByRole('row').nth(1)).toContainText('can’t prove that nothing is missing')
  },
)

browserTest('an auditor checks a downloaded evidence pack with the verifier in it', async () => {
  const company = await annals.createCompany()
  await storeEvents(annals, company.workspaceKey, [1, 2, 3].map(numberedEvent))
  const member = await signInAs(annals, company, 'ADMIN')
  const filters = { action: 'test.2' }
  const body = { source: 'HOT', format: 'JSONL', filters, evidence: 'COMPLETE' }
  expect((await member.call('POST', '/dashboard/exports', { body })).status).toBe(201)
  const page = await open({ member })
  await page.goto('/app/exports')
  const downloading = page.waitForEvent('download')
  await page.getByRole('link', { name: 'Download evidence pack' }).click()
  const download = await downloading
  expect(download.suggestedFilename()).toMatch(/^acme-production-until-[0-9TZ-]+\.zip$/)
  const pack = readZip(await readBuffer(await download.createReadStream()))
  const { vkey } = await readServiceKey(company)
  const { status, stdout, stderr } = verifyPack(pack, vkey)
  expect(stdout + stderr).toContain('no event from seq 1 to 3 that matches the filters is missing')
  expect(status).toBe(0)
  // The job has ended, so the next pack belongs to a new one.
  const again = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download evidence pack' }).click()
  const second = readZip(await readBuffer(await (await again).createReadStream()))
  expect(second[0]?.bytes).toEqual(pack[0]?.bytes)
  expect(verifyPack(second, vkey).status).toBe(0)
})

/** The key of the ledger from the API, not from the pack. */
async function readServiceKey({ workspace, workspaceKey: key }: CreatedCompany) {
  const headers = { accept: 'application/json' }
  const path = `/v1/workspaces/${workspace.id}/checkpoint`
  const { json } = await annals.call('GET', path, { key, headers })
  return json
}

function verifyPack(files: readonly ZipEntry[], vkey: string) {
  const folder = mkdtempSync(join(tmpdir(), 'annals-pack-'))
  try {
    for (const { name, bytes } of files) writeFileSync(join(folder, name), bytes)
    const args = ['export', 'events.jsonl', '--manifest', 'manifest.json', '--vkey', vkey]
    return spawnSync(process.execPath, ['annals-verify.mjs', ...args], {
      cwd: folder,
      encoding: 'utf8',
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}
