import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { keepDayCheckpoint } from '../../../server/src/ledger/tree/checkpoint-day-store.ts'
import { asOwner, withoutTable } from '../../../server/test/harness/dashboard/console.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { eventually } from '../../../server/test/harness/timing/eventually.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { readCheckpoint } from '../../../server/test/harness/proof/proof.ts'
import { storeCosignature } from '../../../server/test/harness/proof/store-cosignature.ts'
import { clickBudget } from './click-budget.ts'
import { expect, startDashboard } from './dashboard.ts'
import { assertAccessible, assertThemesAccessible } from './page-case.ts'

const VERIFIER = join(import.meta.dirname, '../../../verifier/annals-verify.mjs')

const { annals, open, browserTest } = await startDashboard()

browserTest(
  'verification names a changed event, and every page warns until a later one succeeds',
  async () => {
    const company = await annals.createCompany()
    const ids = await sendEvents(
      annals,
      company.workspaceKey,
      [1, 2, 3, 4, 5].map((nth) => ({ category: 'c', action: `number.${nth}` })),
    )
    const member = await signInAs(annals, company, 'ANALYST', [company.workspace.id])
    const page = await open({ member, context: {} })
    // The clock of the member's computer is three minutes ahead.
    await page.clock.setFixedTime(Date.now() + 3 * 60_000)
    await page.goto('/app/integrity')
    const chain = page.getByRole('region', { name: 'Production' })
    await chain.getByRole('button', { name: 'Verify chain' }).click()
    await expect(chain.getByRole('status')).toContainText('The chain holds')
    await expect(chain.getByRole('status')).toContainText('All 5 events are intact')
    await asOwner(annals, (db) =>
      sql`update event set action = 'nothing happened' where id = ${ids[2]}`.execute(db),
    )
    await chain.getByRole('button', { name: 'Verify chain' }).click()
    await expect(chain.getByRole('status')).toContainText('The chain is broken')
    await expect(chain.getByRole('status')).toContainText('broken at event 3')
    const warning = page.getByRole('alert').filter({ hasText: 'The chain of Production is broken' })
    await expect(warning.getByRole('link', { name: 'Go to Integrity' })).toBeVisible()
    await assertThemesAccessible(page)
    await chain.getByRole('link', { name: 'Show event' }).click()
    const event = page.getByRole('complementary', { name: 'Event' })
    await expect(event.getByRole('heading', { name: 'nothing happened' })).toBeVisible()
    await expect(event.getByRole('region', { name: 'Chain' })).toContainText('Verification failed')
    await page.getByRole('link', { name: 'Event types' }).first().click()
    await expect(page.getByRole('heading', { name: 'Event types' })).toBeVisible()
    await asOwner(annals, (db) =>
      sql`update event set action = 'number.3' where id = ${ids[2]}`.execute(db),
    )
    await warning.getByRole('link', { name: 'Go to Integrity' }).click()
    await chain.getByRole('button', { name: 'Verify chain' }).click()
    await expect(chain.getByRole('status')).toContainText('The chain holds')
    await expect(warning).toHaveCount(0)
  },
)

browserTest('four clicks verify a month, and its certificate fits on one page', async () => {
  const company = await annals.createCompany()
  const events = [1, 2, 3].map((nth) => ({ category: 'c', action: `number.${nth}` }))
  await sendEvents(annals, company.workspaceKey, events)
  await eventually(async () => {
    assert.equal((await readCheckpoint(annals, company.workspace.id))?.size, events.length)
  })
  const member = await signInAs(annals, company, 'ANALYST', [company.workspace.id])
  const page = await open({ member })
  await page.goto('/app/integrity')
  const section = page.getByRole('region', { name: 'Verify a period' })
  const click = clickBudget(4)
  await click(section.getByRole('combobox', { name: 'Period' }))
  await click(page.getByRole('option', { name: /, until now$/ }))
  await click(section.getByRole('button', { name: 'Verify period' }))
  await expect(section.getByRole('status')).toContainText('All 3 events of this period are intact')
  await click(section.getByRole('link', { name: 'Certificate' }))
  const sheet = page.getByRole('article', { name: 'Certificate' })
  await expect(sheet).toContainText('All 3 events of this period are intact')
  await expect(sheet).toContainText('3, numbers 1 to 3 in the chain')
  await expect(sheet).toContainText(member.email)
  await expect(sheet).toContainText('3 events, signed')
  await expect(sheet).toContainText(company.workspace.id)
  await assertAccessible(page)
  assert.equal(pagesOf(await page.pdf({ format: 'A4' })), 1)
  const note = await sheet.locator('pre').first().innerText()
  const { vkey } = (await readCheckpoint(annals, company.workspace.id)) ?? assert.fail()
  const file = join(tmpdir(), `checkpoint-${company.workspace.id}.txt`)
  writeFileSync(file, note)
  try {
    const arguments_ = [VERIFIER, 'checkpoint', file, '--vkey', vkey]
    assert.match(execFileSync(process.execPath, arguments_, { encoding: 'utf8' }), /^PROVEN/)
  } finally {
    rmSync(file)
  }
})

/** Chromium writes the number of pages into the page tree. */
function pagesOf(pdf: Buffer): number {
  const [, count] = /\/Type \/Pages\s+\/Count (\d+)/.exec(pdf.toString('latin1')) ?? []
  return Number(count)
}

browserTest(
  'the page shows what was signed on which day, and who verified what with which result',
  async () => {
    const company = await annals.createCompany()
    const { id } = company.workspace
    await sendEvents(annals, company.workspaceKey, [{ category: 'c', action: 'a' }])
    const root = Buffer.alloc(32, 5)
    for (const day of [1, 2, 3, 4, 5, 6, 7]) {
      const signedAt = new Date(Date.UTC(2026, 2, day, 12))
      const checkpoint = { size: 0, root, note: 'note', vkey: 'vkey', signedAt }
      await keepDayCheckpoint(annals.app.database.db, id, checkpoint)
    }
    await eventually(async () => assert.equal((await readCheckpoint(annals, id))?.size, 1))
    await storeCosignature(annals.app.database.db, id, 'witness.example')
    await asOwner(annals, (db) =>
      sql`insert into verify_run (company_id, id, workspace_id, status, checked, total, verdict, is_scheduled, created_at, beat_at, finished_at)
          values (${company.company.id}, gen_random_uuid(), ${id}, 'FAILED', 0, 1, 'The archive can’t be read.', true, now(), now(), now())`.execute(
        db,
      ),
    )
    const page = await open({ member: await signInAs(annals, company, 'VIEWER', [id]) })
    await page.goto('/app/integrity')
    const signed = page.getByRole('region', { name: 'Signed checkpoints' })
    await expect(signed).toContainText('Cosigned by witness.example')
    const days = signed.getByRole('table').getByRole('row')
    await expect(days).toHaveCount(7)
    await signed.getByRole('button', { name: 'Show 8 days' }).click()
    await expect(days).toHaveCount(9)
    await expect(days.last()).toContainText(/1 Mar 2026|Mar 1, 2026/)
    const history = page.getByRole('table', { name: 'Verification history' })
    await expect(history.getByRole('row').nth(1)).toContainText('Daily verification')
    await expect(history).toContainText('The archive can’t be read.')
    const verify = page.getByRole('button', { name: 'Verify period' })
    await expect(verify).toBeDisabled()
    await assertAccessible(page)
  },
)

browserTest(
  'the chain of the audit log is listed with that of the selected workspace',
  async () => {
    const company = await annals.createCompany({ workspaces: ['First', 'Second'] })
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto('/app/integrity')
    const chains = page.getByRole('region').filter({ has: page.getByText('Verify chain') })
    await expect(chains).toHaveCount(3)
    const hint = page.getByText('To verify a period or see signed checkpoints, select a workspace.')
    await expect(hint).toBeVisible()
    await page.getByRole('combobox', { name: 'Workspace' }).selectOption('Second')
    await expect(chains).toHaveCount(2)
    await expect(hint).toHaveCount(0)
    await expect(chains.first()).toContainText('Second')
    await expect(chains.last()).toContainText('Dashboard audit log')
  },
)

/** A page, and a table that one of its lists reads. */
const LISTS = [
  ['/app/explorer', 'rollup_head'],
  ['/app/event-types', 'event_type'],
  ['/app/exports', 'export_job'],
  ['/app/keys', 'api_key'],
  ['/app/integrity', 'verify_run'],
  ['/app/company/members', 'one_time_link'],
  ['/app/webhooks', 'webhook'],
] as const

browserTest('every list says so if the database lacks a table it needs, and recovers', async () => {
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  const notice = page.getByRole('alert').filter({ hasText: 'Some data on this page is missing' })
  for (const [path, table] of LISTS) {
    await withoutTable(annals, table, async () => {
      await page.goto(path)
      await expect(notice).toContainText(`The database has no table ${table},`)
      await expect(page.getByText(/^No .* yet$/)).toHaveCount(0)
    })
  }
  await expect(notice).toHaveCount(0)
})

browserTest('three clicks show whether the log is complete since an outage', async () => {
  const company = await annals.createCompany()
  const events = Array.from({ length: 32 }, (_, nth) => ({ category: 'c', action: `a${nth}` }))
  await sendEvents(annals, company.workspaceKey, events)
  // Two a day for 16 days: as usual at first, then silent from the fifth to the second day before today.
  await asOwner(annals, (db) =>
    sql`update event set received_at = now() - interval '1 hour' - (32 - seq) * interval '12 hours'
         where workspace_id = ${company.workspace.id}`.execute(db),
  )
  await asOwner(annals, (db) =>
    sql`delete from event where workspace_id = ${company.workspace.id} and seq between 23 and 28`.execute(
      db,
    ),
  )
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer')
  const click = clickBudget(3)
  await click(page.getByRole('link', { name: 'Integrity' }).first())
  const section = page.getByRole('region', { name: 'Completeness' })
  await click(section.getByText('7 days'))
  await expect(section.getByText(/^Silent from/)).toBeVisible()
  await expect(section).toContainText('6 of the events 1 to 32 are missing')
  await expect(section.locator('[data-silence]')).toHaveCount(1)
  await assertThemesAccessible(page)
  await click(section.getByRole('link', { name: 'Show events' }))
  await expect(page).toHaveURL(/\/app\/explorer\?.*from=/)
})

browserTest('a workspace with a single event is complete, but not compared', async () => {
  const company = await annals.createCompany()
  await sendEvents(annals, company.workspaceKey, [{ category: 'c', action: 'a' }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/integrity')
  const section = page.getByRole('region', { name: 'Completeness' })
  await expect(section.getByText('Event 1 is present')).toBeVisible()
  await expect(section).toContainText('Silences can’t be detected: the period before has no')
  await expect(section).not.toContainText('No silences')
  await section.getByRole('img', { name: '1 event received' }).hover()
  await expect(section.locator('rect[data-hovered]')).toHaveCount(1)
  await expect(section.locator('figcaption')).toContainText('in the period before')
})
