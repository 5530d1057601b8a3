import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { type Member, signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { walkExplorer } from '../../../server/test/harness/dashboard/explorer.ts'
import { parseJsonl, storeEvents } from '../../../server/test/harness/export/exports.ts'
import { expect, startDashboard } from './dashboard.ts'
import { demoEvents } from './demo-events.ts'
import { TIMEOUT_MS } from './visit.ts'

const { annals, open, browserTest } = await startDashboard()

const DAY_MS = 86_400_000
const company = await annals.createCompany()
const workspaceId = company.workspace.id
await storeEvents(
  annals,
  company.workspaceKey,
  demoEvents({ count: 400, endMs: Date.now(), spanMs: DAY_MS * 6 }),
)
const owner = await signInAs(annals, company, 'OWNER')

async function openExplorer(search: string, member: Member = owner): Promise<Page> {
  const page = await open({ member })
  await page.goto(`/app/explorer?${search}`)
  await settled(page)
  return page
}

/** Waits until the list and the bars show the current query. */
async function settled(page: Page): Promise<void> {
  await expect(total(page)).toHaveText(/^[\d,]+ events?$/)
  await expect(page.getByRole('grid', { name: 'Events' })).toHaveAttribute('aria-busy', 'false')
}

const total = (page: Page) =>
  page.getByRole('region', { name: 'Events over time' }).getByRole('status')
const rows = (page: Page) => page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
const idsOf = (page: Page) => rows(page).evaluateAll((all) => all.map((row) => row.dataset['id']))
const addressOf = (page: Page) => new URL(page.url()).searchParams

/** Expects the same events and the same total as the service returns for the page's query. */
async function expectFound(page: Page, parameters: Record<string, string>): Promise<string[]> {
  const found = await walkExplorer(owner, { workspaceId, ...parameters })
  await expect(total(page)).toHaveText(`${found.length} ${found.length === 1 ? 'event' : 'events'}`)
  const ids: string[] = found.map(({ id }) => id)
  // The total can appear before the rows.
  await expect(async () => {
    const shown = await idsOf(page)
    assert.deepEqual(shown, ids.slice(0, shown.length))
  }).toPass({ timeout: TIMEOUT_MS })
  return ids
}

browserTest(
  'choosing a suggested value filters the list, and removing the chip clears the filter',
  async () => {
    const page = await openExplorer('range=7d')
    const all = await expectFound(page, {})
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'action', exact: true }).click()
    await page.getByRole('option', { name: /^invoice\.paid/ }).click()
    await expect.poll(() => addressOf(page).get('action')).toBe('invoice.paid')
    await settled(page)
    const paid = await expectFound(page, { action: 'invoice.paid' })
    assert(paid.length > 0 && paid.length < all.length)
    await page.getByRole('button', { name: 'Remove filter action: invoice.paid' }).click()
    await expect(total(page)).toHaveText(`${all.length} events`)
  },
)

browserTest('the list loads as many events at a time as the member chose before', async () => {
  const page = await openExplorer('range=7d')
  const asksFor = (limit: string) =>
    page.waitForRequest((request) => {
      const { pathname, searchParams } = new URL(request.url())
      return pathname === '/dashboard/events' && searchParams.get('limit') === limit
    })
  for (const size of ['10', '200']) {
    const asked = asksFor(size)
    await page.getByRole('button', { name: 'Columns, order, density and page size' }).click()
    await page.getByLabel('Events per page').selectOption(size)
    await asked
    await page.keyboard.press('Escape')
    await expectFound(page, {})
    const askedAgain = asksFor(size)
    await page.reload()
    await askedAgain
    await expectFound(page, {})
  }
})

browserTest('a suggestion shows how many events choosing it would leave, or no count', async () => {
  const page = await openExplorer('range=7d')
  const suggest = async (field: string) => {
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: field, exact: true }).click()
  }
  await page.getByRole('button', { name: /^billing \d/ }).click()
  await settled(page)
  await suggest('action')
  await expect(page.getByRole('option', { name: /^invoice\./ })).toHaveCount(3)
  await expect(page.getByRole('listbox').getByRole('option')).toHaveCount(3)
  const paid = page.getByRole('option', { name: /^invoice\.paid\s*\d+$/ })
  const count = /\d+$/.exec(await paid.innerText())?.[0]
  await paid.click()
  await expect(total(page)).toHaveText(`${count} events`)
  await suggest('actor ID')
  await page.getByRole('option', { name: 'usr_02', exact: true }).click()
  await settled(page)
  // The filter by actor is not part of the counts.
  await suggest('action')
  await expect(page.getByRole('option', { name: 'invoice.paid', exact: true })).toBeVisible()
})

browserTest(
  'text search finds events that contain the text, and an empty result suggests which filter to remove',
  async () => {
    const page = await openExplorer('range=7d')
    await page.getByRole('searchbox').fill('dana@')
    await expect.poll(() => addressOf(page).get('text')).toBe('dana@')
    await settled(page)
    const found = await expectFound(page, { text: 'dana@' })
    assert(found.length > 0)
    await page.getByRole('searchbox').fill('nobody at all')
    await page.getByRole('button', { name: 'Remove text: nobody at all' }).click()
    await expect(total(page)).toHaveText('400 events')
  },
)

browserTest(
  'dragging over the histogram counts whole bars and zooms in to exactly them',
  async () => {
    const page = await openExplorer('range=7d')
    const bars = page.getByRole('region', { name: 'Events over time' }).locator('[data-chart]')
    const box = await bars.boundingBox()
    assert(box)
    const drag = async (from: number, to: number) => {
      await page.mouse.move(box.x + box.width * from, box.y + 40)
      await page.mouse.down()
      await page.mouse.move(box.x + box.width * to, box.y + 40, { steps: 8 })
      // The selection follows the pointer a moment later.
      await expect
        .poll(async () => {
          const brush = await bars.locator('[data-brush]').boundingBox()
          return (brush?.x ?? 0) + (brush?.width ?? 0)
        })
        .toBeGreaterThanOrEqual(box.x + box.width * to)
      const counted = await bars.locator('strong').innerText()
      await page.mouse.up()
      return counted
    }
    const counted = await drag(0.3, 0.7)
    await expect.poll(() => addressOf(page).has('from')).toBe(true)
    await expect(total(page)).toHaveText(counted)
    await settled(page)
    const { from, to } = timesOf(page)
    // A bar is two hours, and starts at an even hour in Berlin.
    for (const at of [from, to]) assert.match(BERLIN.format(Date.parse(at)), /^\d[02468]:00:00$/)
    const spanMs = Date.parse(to) - Date.parse(from)
    // The axis takes up some of the width.
    assert(spanMs > 2.5 * DAY_MS && spanMs < 3.2 * DAY_MS, `${spanMs / DAY_MS} days`)
    const found = await expectFound(page, { from, to })
    assert(found.length > 0 && found.length < 400)
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await expect(total(page)).toHaveText('400 events')
  },
)

const BERLIN = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'medium' })

function timesOf(page: Page): { from: string; to: string } {
  const from = addressOf(page).get('from')
  const to = addressOf(page).get('to')
  assert(from && to)
  return { from, to }
}

browserTest('a link shows the same events after a reload and for another member', async () => {
  const page = await openExplorer('range=7d')
  await page.getByRole('searchbox').fill('acme')
  await expect.poll(() => addressOf(page).get('text')).toBe('acme')
  await settled(page)
  await page.getByRole('button', { name: /billing \d/ }).click()
  await expect.poll(() => addressOf(page).get('category')).toBe('billing')
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('checkbox', { name: 'Category' }).check()
  await page.keyboard.press('Escape')
  await settled(page)
  await expectFound(page, { category: 'billing', text: 'acme' })
  await rows(page).nth(2).click()
  const event = page.getByRole('complementary', { name: 'Event' })
  await expect(event.getByRole('region', { name: 'Chain' })).toContainText('Verified')
  const before = await snapshotOf(page)
  await page.reload()
  await expect(event.getByRole('region', { name: 'Chain' })).toContainText('Verified')
  await settled(page)
  assert.deepEqual(await snapshotOf(page), before)
  const other = await signInAs(annals, company, 'VIEWER', [workspaceId])
  const theirs = await open({ member: other })
  await theirs.goto(page.url())
  await expect(theirs.getByRole('region', { name: 'Chain' })).toContainText('Verified')
  await settled(theirs)
  assert.deepEqual(await snapshotOf(theirs), before)
})

/** Everything that a link must reproduce, after a reload and for another member. */
async function snapshotOf(page: Page) {
  return {
    search: Object.fromEntries(addressOf(page)),
    text: await page.getByRole('searchbox').inputValue(),
    chips: await page.getByRole('button', { name: /^Remove filter/ }).count(),
    total: await total(page).innerText(),
    columns: await page.getByRole('columnheader').allInnerTexts(),
    event: await page
      .getByRole('complementary', { name: 'Event' })
      .getByRole('heading')
      .first()
      .innerText(),
    first: (await idsOf(page)).slice(0, 10),
  }
}

browserTest('a saved view restores its filters for every member it is shared with', async () => {
  const page = await openExplorer('range=7d&action=user.login')
  const before = await total(page).innerText()
  await page.getByRole('button', { name: 'Save view' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Logins of the week')
  await dialog.getByLabel(/^Everyone with access to/).check()
  await dialog.getByRole('button', { name: 'Save view', exact: true }).click()
  await expect(dialog).toHaveCount(0)
  const colleague = await signInAs(annals, company, 'VIEWER', [workspaceId])
  const theirs = await openExplorer('range=7d', colleague)
  await theirs.getByRole('button', { name: 'Views' }).click()
  await theirs.getByRole('button', { name: /^Logins of the week/ }).click()
  await expect(
    theirs.getByRole('button', { name: 'Remove filter action: user.login' }),
  ).toBeVisible()
  await expect(total(theirs)).toHaveText(before)
})

browserTest('exporting from the explorer downloads exactly the events that are shown', async () => {
  const page = await openExplorer('range=7d&category=billing&text=bo')
  const found = await walkExplorer(owner, { workspaceId, category: 'billing', text: 'bo' })
  await expect(total(page)).toHaveText(`${found.length} events`)
  await page.getByRole('button', { name: 'Export events' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog).toContainText(`${found.length} rows`)
  await dialog.getByRole('button', { name: 'Create export' }).click()
  const downloading = page.waitForEvent('download')
  const link = dialog.getByRole('link', { name: 'Download' })
  await link.click()
  const download = await downloading
  const chunks: Buffer[] = []
  for await (const chunk of await download.createReadStream()) chunks.push(Buffer.from(chunk))
  const exported = parseJsonl(Buffer.concat(chunks).toString())
  const bySeq = found.toSorted((a, b) => a.seq - b.seq)
  assert(exported.length > 0)
  assert.deepEqual(
    exported.map(({ id, hash }) => ({ id, hash })),
    bySeq.map(({ id, hash }) => ({ id, hash })),
  )
  // A second click would save the error response as a file.
  await expect(link).toHaveAccessibleDescription(/^The download has started/)
  await expect(link).toBeFocused()
  page.on('download', () => assert.fail('an export can be downloaded only once'))
  await page.keyboard.press('Enter')
  await page.goto('/app/exports')
  await expect(page.getByRole('row').nth(1)).toContainText(`${found.length} rows`)
})

browserTest(
  'a search continues past empty pages until it finds events or reaches the end',
  async () => {
    const page = await open({ member: owner })
    const cursorsOf: Record<string, (string | null)[]> = { 'invoice.paid': [], none: [] }
    await page.route(
      ({ pathname }) => pathname === '/dashboard/events',
      async (route) => {
        const url = new URL(route.request().url())
        const cursor = url.searchParams.get('cursor')
        cursorsOf[url.searchParams.get('action') ?? '']?.push(cursor)
        const nextCursor = cursor === null ? 'first' : cursor === 'first' ? 'second' : null
        const hotSince = new Date(0).toISOString()
        if (nextCursor !== null) {
          return await route.fulfill({ json: { data: [], nextCursor, hotSince } })
        }
        url.searchParams.delete('cursor')
        return await route.continue({ url: url.href })
      },
    )
    await page.goto(`/app/explorer?range=7d&workspaceId=${workspaceId}&action=invoice.paid`)
    await expect(rows(page).first()).toBeVisible()
    assert.deepEqual(cursorsOf['invoice.paid']?.slice(0, 3), [null, 'first', 'second'])
    await page.goto(`/app/explorer?range=7d&workspaceId=${workspaceId}&action=none`)
    await expect(page.getByText(/^No events:/)).toBeVisible()
    assert.deepEqual(cursorsOf['none'], [null, 'first', 'second'])
  },
)
