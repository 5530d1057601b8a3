import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { walkExplorer } from '../../../server/test/harness/dashboard/explorer.ts'
import { storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000
const company = await annals.createCompany()
const workspaceId = company.workspace.id
const events = demoEvents({ count: 300, endMs: Date.now(), spanMs: DAY_MS * 6 }).map((event) =>
  event.category === 'billing' ? { ...event, projectId: company.project.id } : event,
)
await storeEvents(annals, company.workspaceKey, events)
const owner = await signInAs(annals, company, 'OWNER')

/** The same counts as the facet shows, from the events themselves. */
function countsOf(
  all: readonly (typeof events)[number][],
  valueOf: (event: (typeof events)[number]) => string | undefined,
): string[] {
  const counts = new Map<string, number>()
  for (const value of all.flatMap((event) => valueOf(event) ?? [])) {
    counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts]
    .toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([value, count]) => `${value} ${count}`)
    .slice(0, 8)
}

const panel = (page: Page) => page.getByRole('complementary', { name: 'Facets' })
const total = (page: Page) =>
  page.getByRole('region', { name: 'Events over time' }).getByRole('status')

async function expectFacet(page: Page, title: string, wanted: readonly string[]): Promise<void> {
  const facet = panel(page).getByRole('region', { name: title })
  await expect(async () => {
    const texts = await facet.getByRole('listitem').allInnerTexts()
    const shown = texts.map((text) => text.split('\n').slice(0, 2).join(' '))
    assert.deepEqual(shown.toSorted(), [...wanted].toSorted())
  }).toPass()
}

browserTest(
  'facets show the exact counts of the result, filter and exclude with one click, and stay open',
  async () => {
    const page = await open({ member: owner })
    await page.goto(`/app/explorer?workspaceId=${workspaceId}&range=7d`)
    await expect(total(page)).toHaveText('300 events')
    await expect(panel(page)).toHaveCount(0)
    await page.getByRole('button', { name: 'Facets' }).click()
    await expectFacet(
      page,
      'Actor emails',
      countsOf(events, ({ actor }) => actor.email),
    )
    await expectFacet(
      page,
      'Resource types',
      countsOf(events, ({ resource }) => resource.type),
    )
    const billing = events.filter(({ category }) => category === 'billing')
    await expectFacet(page, 'Projects', [`${company.project.name} ${billing.length}`])
    await expect(panel(page).getByRole('region', { name: 'Projects' })).toContainText(
      `Other or none ${300 - billing.length}`,
    )

    await panel(page)
      .getByRole('button', { name: /^bo@acme\.example \d+ events, filter by this actor email$/ })
      .click()
    const own = events.filter(({ actor }) => actor.email === 'bo@acme.example')
    await expect(total(page)).toHaveText(`${own.length} events`)
    await expectFacet(
      page,
      'Actions',
      countsOf(own, ({ action }) => action),
    )
    await page.reload()
    await expectFacet(page, 'Actor emails', [`bo@acme.example ${own.length}`])
    await panel(page).getByRole('button', { name: 'Exclude action: user.login' }).click()
    const left = own.filter(({ action }) => action !== 'user.login')
    await expect(total(page)).toHaveText(`${left.length} events`)
    const found = await walkExplorer(owner, {
      workspaceId,
      actorEmail: 'bo@acme.example',
      not: 'action:user.login',
    })
    assert.equal(found.length, left.length)
  },
)

browserTest('metadata keys are counted among the loaded events, and filter by them', async () => {
  const page = await open({ member: owner })
  await page.goto(`/app/explorer?workspaceId=${workspaceId}&range=7d&action=role.changed`)
  await page.getByRole('button', { name: 'Facets' }).click()
  const changed = events.filter(({ action }) => action === 'role.changed').length
  const keys = panel(page).getByRole('region', { name: 'Metadata keys' })
  await expect(keys).toContainText(`In the ${changed} events loaded so far`)
  await expectFacet(page, 'Metadata keys', [
    `after ${changed}`,
    `before ${changed}`,
    `ip ${changed}`,
  ])
  await keys.getByRole('button', { name: /^ip \d+ events, filter by this metadata key$/ }).click()
  await expect(
    page.getByRole('button', { name: 'Remove filter metadata.ip: exists' }),
  ).toBeVisible()
  await expect(total(page)).toHaveText(`${changed} events`)
})

browserTest('the histogram groups by actor and by project, also in a view', async () => {
  const page = await open({ member: owner })
  await page.goto(`/app/explorer?workspaceId=${workspaceId}&range=7d`)
  const chart = page.getByRole('region', { name: 'Events over time' })
  const people = countsOf(events, ({ actor }) => actor.email)
  await page.getByRole('combobox', { name: 'Group by' }).selectOption('By actor email')
  for (const text of people) {
    const [email = '', count = ''] = text.split(' ')
    const name = `${email} ${count} events, filter by this actor email`
    await expect(chart.getByRole('button', { name, exact: true })).toBeVisible()
  }
  await page.getByRole('combobox', { name: 'Group by' }).selectOption('By project')
  await expect(chart.getByRole('button', { name: company.project.name })).toBeVisible()
  await expect(chart).toContainText('Other or none')
  await page.getByRole('button', { name: 'Save view' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Projects')
  await dialog.getByRole('button', { name: 'Save view', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  const { json } = await owner.call('GET', '/dashboard/explorer/views')
  assert.equal(json.views[0].query.groupBy, 'projectId')
})

browserTest('the total is compared with the period before, as far as it is hot', async () => {
  const other = await annals.createCompany()
  const hoursAgo = [1, 2, 3, 30, 31]
  await storeEvents(
    annals,
    other.workspaceKey,
    hoursAgo.map((hours) => ({
      category: 'c',
      action: 'a',
      timestamp: new Date(Date.now() - hours * 3_600_000).toISOString(),
    })),
  )
  const page = await open({ member: await signInAs(annals, other, 'OWNER') })
  const chart = page.getByRole('region', { name: 'Events over time' })
  await page.goto('/app/explorer?range=24h')
  await expect(chart).toContainText('+50% vs. the previous 24 hours')
  await page.goto('/app/explorer?range=7d')
  await expect(chart).toContainText('+5 vs. the previous 7 days')
  await page.goto('/app/explorer?range=allTime')
  await expect(total(page)).toHaveText('5 events')
  await expect(chart).not.toContainText(' vs. ')
})
