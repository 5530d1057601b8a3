import { mkdirSync, statSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from '@playwright/test'
import { sql } from 'kysely'
import { ensurePages } from '../../../server/src/command/build-pages.ts'
import { startEngine } from '../../../server/src/platform/engine/embedded-postgres.ts'
import { createLogger } from '../../../server/src/platform/logger.ts'
import { migrate } from '../../../server/src/platform/pg/migrate.ts'
import { asOwner, openDashboardDownload } from '../../../server/test/harness/dashboard/console.ts'
import {
  type Receiver,
  type Script,
  startReceiver,
} from '../../../server/test/harness/webhook/receiver.ts'
import { startTestApp, type TestApp } from '../../../server/test/harness/app/start-app.ts'
import { ANY_DESTINATION } from '../../../server/test/harness/webhook/webhooks.ts'
import { startBrowser } from './browser.ts'
import { type DemoCompany, createDemo } from './demo-company.ts'
import { DESKTOP, openVisit, PHONE } from './visit.ts'

/**
 * `bin/node dashboard/test/browser/screenshots.ts`: updates the screenshots in docs/images, from a
 * company with a few thousand events of the last 30 days.
 */
const IMAGES = join(import.meta.dirname, '../../../docs/images')
const DAY_MS = 86_400_000
const PICTURE_BYTES_MAX = 200_000

const logger = createLogger('warn', 'stderr')
await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-pictures-'))
await using engine = await startEngine({ dataDir: join(folder.path, 'data'), exclusive: false })
await migrate({ connection: engine.connection, logger })
process.env.TEST_CONNECTION = JSON.stringify(engine.connection)
const pages = await ensurePages(logger)
const pagesFolder = process.env.TEST_PAGES ?? pages.folder
if (pagesFolder === null || pages.warning !== null) throw new Error(pages.warning ?? 'no pages')
await using annals = await startTestApp({ pagesFolder, env: ANY_DESTINATION })
await using receiver = await startReceiver(sometimesBusy())
await using opened = await startBrowser()
if (opened === null) throw new Error('there is no browser to take pictures with')
await takePictures(opened.browser, await prepare(annals, receiver))

/** Refuses an occasional delivery, permanently or temporarily. */
function sometimesBusy(): Script {
  let count = 0
  return () => {
    count += 1
    if (count % 53 === 0) return { status: 400, body: '{"error":"unknown customer"}' }
    if (count % 39 === 0) return { status: 503, body: 'busy, come back later' }
    return { afterMs: count % 40 }
  }
}

async function prepare(app: TestApp, sink: Receiver): Promise<DemoCompany> {
  const demo = await createDemo(app, sink, {
    count: 4_000,
    deliveredCount: 160,
    recentCount: 16,
    endMs: Date.now(),
    email: 'ana@acme.example',
  })
  await createKeys(demo)
  await createExports(app, demo)
  await spreadDeliveries(app, sink)
  return demo
}

async function createKeys({ owner, workspace }: DemoCompany): Promise<void> {
  const expiresAt = new Date(Date.now() + 90 * DAY_MS).toISOString()
  const own = { scope: 'WORKSPACE', workspaceId: workspace.id, expiresAt }
  const bodies = [
    { name: 'billing service', ...own },
    { name: 'web application', ...own, permissions: ['events:write'] },
    {
      name: 'data warehouse',
      scope: 'COMPANY',
      permissions: ['events:read', 'exports'],
      expiresAt,
    },
  ]
  for (const body of bodies) await owner.call('POST', '/dashboard/keys', { body })
}

async function createExports(app: TestApp, { owner, workspace }: DemoCompany): Promise<void> {
  const make = async (body: object): Promise<string> => {
    const filters = { workspaceId: workspace.id, action: 'invoice.deleted', range: '30d' }
    const options = { source: 'HOT', format: 'JSONL', filters, ...body }
    return (await owner.call('POST', '/dashboard/exports', { body: options })).json.id
  }
  const canceled = await make({ filters: { workspaceId: workspace.id } })
  await owner.call('POST', `/dashboard/exports/${canceled}/cancel`)
  for (const body of [{ limit: 50 }, { format: 'CSV' }]) {
    const download = await openDashboardDownload(app, owner, await make(body))
    await download.rest()
  }
  await make({})
}

/** Spreads the deliveries over the last day, and replaces the receiver's URL with a realistic one. */
async function spreadDeliveries(app: TestApp, sink: Receiver): Promise<void> {
  const address = 'https://hooks.acme.example/annals'
  await asOwner(app, async (db) => {
    await sql`update webhook set url = ${address}`.execute(db)
    await sql`
      update webhook_delivery d
         set created_at = d.created_at - (m.last - d.sequence) * interval '8 minutes',
             updated_at = d.updated_at - (m.last - d.sequence) * interval '8 minutes',
             -- Nothing must be sent to that address.
             due_at = d.due_at + interval '1 hour',
             attempts = replace(d.attempts::text, ${sink.url}, ${address})::jsonb
        from (select max(sequence) as last from webhook_delivery) m`.execute(db)
  })
}

async function takePictures(browser: Browser, demo: DemoCompany): Promise<void> {
  mkdirSync(IMAGES, { recursive: true })
  const explorer = `/app/explorer?workspaceId=${demo.workspace.id}&range=30d`
  const { page } = await openVisit(browser, annals.url, { member: demo.owner })
  const take = async (name: string, path: string, act?: (page: Page) => Promise<unknown>) => {
    await page.goto(path, { waitUntil: 'networkidle' })
    await act?.(page)
    await page.evaluate(() => document.fonts.ready.then(() => null))
    await page.mouse.move(0, 0)
    await picture(page, name)
  }
  // These pages show all workspaces until the explorer selects one.
  await take('keys', '/app/keys')
  await take('exports', '/app/exports')
  await take('webhook', `/app/webhooks/${demo.webhookId}`)
  await take('explorer-light', explorer)
  await take('event', `${explorer}&action=invoice.deleted`, openFirst)
  await take('integrity', '/app/integrity', (tab) =>
    tab.getByRole('button', { name: 'Copy checkpoint' }).waitFor(),
  )
  await page.emulateMedia({ colorScheme: 'dark' })
  await take('explorer-dark', explorer)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(PHONE)
  await take('explorer-small', explorer)
  await page.setViewportSize(DESKTOP)
}

async function openFirst(page: Page): Promise<void> {
  await page.locator('[data-id]').nth(1).getByRole('gridcell').first().click()
  await page.getByText('Verified').waitFor()
  await page.getByRole('region', { name: 'Deliveries' }).scrollIntoViewIfNeeded()
}

async function picture(page: Page, name: string): Promise<void> {
  const path = join(IMAGES, `${name}.png`)
  await page.screenshot({ path })
  const { size } = statSync(path)
  process.stdout.write(`${name}.png ${size} bytes\n`)
  if (size > PICTURE_BYTES_MAX) throw new Error(`${name}.png is too large for a README`)
}
