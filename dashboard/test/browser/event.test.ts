import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { asOwner } from '../../../server/test/harness/dashboard/console.ts'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { oneOfManyWithin } from '../../../server/test/harness/timing/eventually.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { expect, startDashboard } from './dashboard.ts'
import { openEvent } from './event-list.ts'
import { violationsOf } from './page-case.ts'

const { annals, open, browserTest } = await startDashboard()

const EVENT = {
  category: 'billing',
  action: 'invoice.deleted',
  actor: { id: 'usr_1', email: 'ana@example.com', role: 'admin' },
  resource: { type: 'invoice', id: 'inv_91' },
  metadata: { amount: { value: 12.5, currency: 'EUR' }, tags: ['late', 'disputed'] },
}

browserTest(
  'the event panel shows every field, and the browser itself finds and marks a changed event',
  async () => {
    const company = await annals.createCompany()
    const other = { category: 'auth', action: 'user.login' }
    const ids = await sendEvents(annals, company.workspaceKey, [other, EVENT, other])
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto('/app/explorer')
    await openEvent(page, 'invoice.deleted')
    const event = page.getByRole('complementary', { name: 'Event' })
    for (const text of [
      'ana@example.com',
      'usr_1',
      'inv_91',
      'currency',
      'EUR',
      '12.5',
      'disputed',
    ]) {
      await expect(event).toContainText(text)
    }
    const chain = event.getByRole('region', { name: 'Chain' })
    await expect(chain).toContainText('Verified')
    await expect(chain).toContainText('it matches the neighboring events')
    await chain.getByRole('button', { name: 'Previous: 1' }).click()
    await expect(event.getByRole('heading', { name: 'user.login' })).toBeVisible()
    await asOwner(annals, (db) =>
      sql`update event set metadata = '{"amount":{"currency":"EUR","value":1}}' where id = ${ids[1]}`.execute(
        db,
      ),
    )
    await page.goto('/app/explorer')
    const marked = page.getByRole('row').filter({ hasText: 'Failed verification' })
    await expect(marked).toHaveCount(1)
    await expect(marked).toContainText('invoice.deleted')
    await expect(
      page.getByRole('alert').filter({ hasText: 'The chain of Production is broken' }),
    ).toBeVisible()
    await page.goto(`/app/explorer?event=${ids[1]}`)
    await expect(event.getByRole('alert')).toContainText('This event failed verification')
    expect(await violationsOf(page)).toEqual([])
    await expect(chain).toContainText('Verification failed')
    await expect(chain).toContainText('The value of metadata has changed since it was sealed')
  },
)

browserTest('an event links to all events of the same actor', async () => {
  const company = await annals.createCompany()
  const login = { category: 'auth', action: 'user.login', actor: EVENT.actor }
  const foreign = { category: 'auth', action: 'other.login', actor: { email: 'bo@example.com' } }
  await sendEvents(annals, company.workspaceKey, [login, foreign, EVENT])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer?category=billing')
  await openEvent(page, 'invoice.deleted')
  await page.getByRole('button', { name: 'Same actor' }).click()
  const cells = page.locator('[data-id] [data-column=action]')
  await expect(cells).toHaveText([/invoice\.deleted/, /user\.login/])
  await expect(
    page.getByRole('button', { name: 'Remove filter actor email: ana@example.com' }),
  ).toBeVisible()
})

browserTest(
  'an event is shown with its neighbors in the chain, whatever the filters are',
  async () => {
    const company = await annals.createCompany()
    const actions = Array.from({ length: 14 }, (_, nth) => `step.${nth + 1}`)
    const events = actions.map((action) => ({ ...EVENT, action }))
    await sendEvents(annals, company.workspaceKey, events)
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto('/app/explorer?action=step.7')
    await openEvent(page, 'step.7')
    const context = page.getByRole('region', { name: 'Before and after' }).getByRole('button')
    const near = (first: number, last: number) =>
      actions.slice(first - 1, last).map((action) => new RegExp(`${action} ana@example\\.com$`))
    await expect(context).toHaveText(near(2, 12))
    await expect(context.nth(5)).toHaveAttribute('aria-current', 'true')
    await context.nth(4).click()
    await expect(page.getByRole('heading', { name: 'step.6' })).toBeVisible()
    await expect(context).toHaveText(near(1, 11))
  },
)

browserTest('late events are marked, and the time of receipt can be a column', async () => {
  const company = await annals.createCompany()
  const at = (offsetMs: number) => new Date(Date.now() + offsetMs).toISOString()
  const HOUR_MS = 3_600_000
  await sendEvents(annals, company.workspaceKey, [
    { category: 'c', action: 'on.time' },
    { category: 'c', action: 'too.late', timestamp: at(-3 * HOUR_MS - 60_000) },
    { category: 'c', action: 'too.early', timestamp: at(2 * HOUR_MS + 60_000) },
  ])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  // The period includes the next day, because the service accepts timestamps of the next 24 hours.
  const times = `from=${at(-24 * HOUR_MS)}&to=${at(24 * HOUR_MS)}`
  await page.goto(`/app/explorer?${times}`)
  const row = (action: string) => page.getByRole('row').filter({ hasText: action })
  await expect(row('too.late')).toContainText('received 3 hours late')
  await expect(row('too.early')).toContainText('received 2 hours before its time')
  await expect(row('on.time')).not.toContainText('received')
  await page.getByRole('button', { name: 'Columns, order, density and page size' }).click()
  await page.getByRole('checkbox', { name: 'Received' }).check()
  await expect(page.getByRole('columnheader', { name: 'Received (Berlin)' })).toBeVisible()
  const cell = row('too.late').locator('[data-column=received]')
  await expect(cell).toContainText(/\d\d:\d\d:\d\d\.\d\d\d, received 3 hours late/)
  await expect(row('too.late').locator('[data-column=time]')).not.toContainText('received')
  expect(await violationsOf(page)).toEqual([])
  await page.goto(`/app/explorer?${times}&action=too.late`)
  await openEvent(page, 'too.late')
  await expect(page.getByRole('region', { name: 'When' })).toContainText('received 3 hours late')
})

browserTest('an event can be copied as JSON, complete and as in an export', async () => {
  const company = await annals.createCompany()
  const [id] = await sendEvents(annals, company.workspaceKey, [EVENT])
  const owner = await signInAs(annals, company, 'OWNER')
  const page = await open({
    member: owner,
    context: { permissions: ['clipboard-read', 'clipboard-write'] },
  })
  await page.goto(`/app/explorer?event=${id}`)
  const raw = page.getByRole('region', { name: 'Raw JSON' })
  await expect(raw.getByText('"currency"')).toBeHidden()
  await raw.getByText('Raw JSON').click()
  await expect(raw.getByText('"currency"')).toBeVisible()
  await raw.getByRole('button', { name: 'Copy raw JSON' }).click()
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()))
  const { json } = await owner.call('GET', `/dashboard/events/${id}`)
  assert.deepEqual(copied, json.event)
})

browserTest(
  'metadata keys with escapes are shown as they are, whatever was shown before',
  async () => {
    const company = await annals.createCompany()
    const keys = ['x\\', 'x"']
    const ids = await sendEvents(
      annals,
      company.workspaceKey,
      keys.map((key) => ({ ...EVENT, metadata: { a: 1, [key]: 2 } })),
    )
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.addInitScript(mistakeKeys)
    await page.goto('/app/explorer')
    const event = page.getByRole('complementary', { name: 'Event' })
    const rows = page.getByRole('grid', { name: 'Events' }).locator('[data-id]')
    for (const nth of [0, 1, 0]) {
      await rows
        .and(page.locator(`[data-id="${ids[nth]}"]`))
        .getByRole('gridcell')
        .first()
        .click()
      const metadata = event.getByRole('region', { name: 'Metadata' })
      await expect(metadata.getByText(keys[nth] ?? '', { exact: true })).toBeVisible()
      await expect(metadata.getByText(keys[1 - nth] ?? '', { exact: true })).toBeHidden()
      await expect(event.getByRole('region', { name: 'Chain' })).toContainText('Verified')
    }
  },
)

/** Makes a browser read keys as V8 13.6 (Chrome 136) can: it takes `x"` for `x\`, which it has read before. */
function mistakeKeys(): void {
  const { parse } = JSON
  const rename = (_key: string, value: unknown): unknown => {
    if (typeof value !== 'object' || value === null || !('x"' in value)) return value
    const { 'x"': item, ...others } = value
    return { ...others, 'x\\': item }
  }
  JSON.parse = (text: string) => parse(text, rename)
  Response.prototype.json = async function () {
    return JSON.parse(await this.text())
  }
}

const LATE_MS_MAX = 2_000

browserTest('the live tail shows a matching event within two seconds, and no others', async () => {
  const company = await annals.createCompany()
  await sendEvents(annals, company.workspaceKey, [{ category: 'old', action: 'first.one' }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER') })
  await page.goto('/app/explorer')
  await expect(page.getByRole('gridcell', { name: 'first.one' })).toBeVisible()
  await page.getByRole('switch', { name: 'Live', exact: true }).click()
  // Doesn't wait for the connection: the list reloads when the live tail connects.
  await expect(page.getByRole('switch', { name: /^Live/ })).toBeChecked()
  let sent = 0
  await oneOfManyWithin(LATE_MS_MAX, async () => {
    sent += 1
    const action = `live.${sent}`
    await sendEvents(annals, company.workspaceKey, [{ category: 'new', action }])
    const respondedAtMs = performance.now()
    await expect(page.getByRole('gridcell', { name: action })).toBeVisible()
    return performance.now() - respondedAtMs
  })
  await page.goto('/app/explorer?category=wanted&live=1')
  await sendEvents(annals, company.workspaceKey, [
    { category: 'unwanted', action: 'not.this' },
    { category: 'wanted', action: 'but.this' },
  ])
  await expect(page.getByRole('gridcell', { name: 'but.this' })).toBeVisible()
  await expect(page.getByRole('gridcell', { name: 'not.this' })).toHaveCount(0)
})

browserTest('the count of a live tail is that of the list, and both follow the clock', async () => {
  const company = await annals.createCompany()
  const { workspaceKey } = company
  const timestamp = new Date(Date.now() - 13.5 * 60_000).toISOString()
  await sendEvents(annals, workspaceKey, [{ category: 'c', action: 'old.one', timestamp }])
  const page = await open({ member: await signInAs(annals, company, 'OWNER'), context: {} })
  await page.clock.install()
  await page.goto('/app/explorer?range=15m&live=1')
  const cell = (action: string) => page.getByRole('gridcell', { name: action })
  await expect(cell('old.one')).toBeVisible()
  await expect(page.getByRole('switch', { name: 'Live', exact: true })).toBeChecked()
  for (const action of ['new.1', 'new.2', 'new.3']) {
    await sendEvents(annals, workspaceKey, [{ category: 'c', action }])
    await expect(cell(action)).toBeVisible()
    const [rows, total] = await page.evaluate(() => [
      document.querySelectorAll('[role=grid] [data-id]').length,
      document.querySelector('[aria-label="Events over time"] [role=status]')?.textContent,
    ])
    assert.equal(total, `${rows} events`)
  }
  await page.clock.fastForward('03:00')
  await expect(cell('old.one')).toHaveCount(0)
  await expect(cell('new.1')).toBeVisible()
  const total = page.getByRole('region', { name: 'Events over time' }).getByRole('status')
  await expect(total).toHaveText('3 events')
})

browserTest(
  'the list and the count include events that arrived while another page was open',
  async () => {
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto('/app/explorer')
    await expect(page.getByText('Waiting for your first event')).toBeVisible()
    const total = page.getByRole('region', { name: 'Events over time' }).getByRole('status')
    for (const count of ['1 event', '2 events']) {
      await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
      await expect(page.getByRole('heading', { name: 'Keys' })).toBeVisible()
      await sendEvents(annals, company.workspaceKey, [{ category: 'c', action: 'missed' }])
      await page.getByRole('link', { name: 'Explorer' }).first().click()
      await expect(total).toHaveText(count)
      await expect(page.locator('[role=grid] [data-id]')).toHaveCount(Number(count[0]))
    }
    await page.goto('/app/welcome')
    await expect(page.getByText('Received missed')).toBeVisible()
  },
)

browserTest(
  'the welcome page creates a key and shows the first event as soon as it arrives',
  async () => {
    const company = await annals.createCompany()
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto('/app/welcome')
    await page.getByRole('button', { name: 'Create key' }).click()
    await expect(page.getByText('The command now contains your new key')).toBeVisible()
    const command = await page.locator('pre').first().innerText()
    const [key, body] = [/Bearer (\S+)'/.exec(command)?.[1], /-d '(.*)'/.exec(command)?.[1]]
    assert(key && body)
    const sent = await annals.call('POST', '/v1/events', { key, text: body })
    assert.equal(sent.status, 201)
    await expect(page.getByText('Received invoice.deleted')).toBeVisible()
    await page.getByRole('link', { name: 'View event' }).click()
    await expect(page.getByRole('region', { name: 'Chain' })).toContainText('Verified')
    await expect(page.locator('[role=grid] [data-id]')).toHaveCount(1)
  },
)

browserTest(
  'without a connection a banner says so, no count or row is that of another period, and all recovers',
  async () => {
    const company = await annals.createCompany()
    await sendEvents(annals, company.workspaceKey, [EVENT])
    const member = await signInAs(annals, company, 'OWNER')
    const page = await open({ member, mayLoseService: true })
    await page.goto('/app/explorer')
    const rows = page.locator('[role=grid] [data-id]')
    const total = page.getByRole('region', { name: 'Events over time' }).getByRole('status')
    const choose = async (range: string) => {
      await page.getByRole('button', { name: /^Time: / }).click()
      await page.getByRole('menuitem', { name: range }).click()
    }
    const assertStale = async (banner: string) => {
      await expect(page.getByText(banner)).toBeVisible()
      await choose(banner.startsWith('You') ? 'Last 7 days' : 'Last 30 days')
      await expect(total).toHaveText('Count unavailable')
      await expect(rows).toHaveCount(0)
    }
    const assertRecovers = async () => {
      await expect(total).toHaveText('1 event')
      await expect(rows).toHaveCount(1)
      await expect(page.getByText('This page may be out of date')).toHaveCount(0)
    }
    await assertRecovers()
    await page.context().setOffline(true)
    await assertStale('You’re offline')
    expect(await violationsOf(page)).toEqual([])
    await page.context().setOffline(false)
    await assertRecovers()
    // The page notices this on its own.
    await page.route(/\/(dashboard|health)/, (route) => route.abort())
    await assertStale('The service isn’t responding')
    await page.unroute(/\/(dashboard|health)/)
    await assertRecovers()
  },
)
