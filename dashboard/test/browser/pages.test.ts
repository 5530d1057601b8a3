import assert from 'node:assert/strict'
import { after } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'
import { startReceiver } from '../../../server/test/harness/receiver.ts'
import { ANY_DESTINATION } from '../../../server/test/harness/webhooks.ts'
import { expect, startDashboard } from './dashboard.ts'
import { foundDemo } from './demo-company.ts'

const { annals, open, promise } = await startDashboard({ env: ANY_DESTINATION })
const receiver = await startReceiver()
after(() => receiver[Symbol.asyncDispose]())
const demo = await foundDemo(annals, receiver, { count: 300, endMs: Date.now() })

const SMALL = { width: 390, height: 844 }
const DESK = { width: 1_280, height: 800 }

type Sight = {
  name: string
  path: string
  /** Seen once the page has what it is about. */
  shows: string | RegExp
  isSignedOut?: true
  /** What to do there before it is looked at. */
  act?: (page: Page) => Promise<void>
}

const production = demo.workspace.id
const webhook = `/app/webhooks/${demo.webhookId}`
const explorer = `/app/explorer?workspaceId=${production}&range=30d`

const SIGHTS: readonly Sight[] = [
  { name: 'the sign-in', path: '/app/explorer', shows: 'I have forgotten', isSignedOut: true },
  { name: 'an invitation', path: demo.invitationPath, shows: 'Join Acme', isSignedOut: true },
  { name: 'the welcome', path: '/app/welcome', shows: 'Waiting for your first event' },
  { name: 'the explorer', path: explorer, shows: /user\.login/ },
  {
    name: 'the explorer of all workspaces',
    path: '/app/explorer?workspaceId=all&range=7d',
    shows: /user\.login/,
  },
  { name: 'the event drawer', path: `${explorer}&event=${demo.eventId}`, shows: 'recomputed' },
  {
    name: 'a search without results',
    path: `${explorer}&category=auth&action=nothing`,
    shows: 'Take one away',
  },
  { name: 'the filter menu', path: explorer, shows: /user\.login/, act: openFilterMenu },
  { name: 'exports', path: '/app/exports', shows: /SHA-256/ },
  {
    name: 'the form of a new export',
    path: '/app/exports',
    shows: /SHA-256/,
    act: clickButton('New export'),
  },
  { name: 'export templates', path: '/app/exports?tab=templates', shows: 'Billing of the week' },
  { name: 'webhooks', path: '/app/webhooks', shows: receiver.url },
  { name: 'a webhook', path: webhook, shows: 'Delivered' },
  {
    name: 'the settings of a webhook',
    path: webhook,
    shows: 'Delivered',
    act: openTab('Settings'),
  },
  {
    name: 'the signature check',
    path: webhook,
    shows: 'Delivered',
    act: openTab('Signature check'),
  },
  { name: 'a delivery', path: webhook, shows: 'Delivered', act: openDelivery },
  { name: 'keys', path: '/app/keys', shows: 'Production key' },
  {
    name: 'the form of a new key',
    path: '/app/keys',
    shows: 'Production key',
    act: clickButton('Create a key'),
  },
  { name: 'the question whether a key may', path: '/app/keys?tab=check', shows: 'May the key' },
  { name: 'the allowlist', path: '/app/keys?tab=allowlist', shows: 'Your address now' },
  { name: 'integrity', path: '/app/integrity', shows: 'The chain holds' },
  { name: 'workspaces', path: '/app/company/workspaces', shows: 'Staging' },
  { name: 'members', path: '/app/company/members', shows: demo.owner.email },
  { name: 'activity', path: '/app/company/activity', shows: demo.owner.email },
  { name: 'plan and usage', path: '/app/company/usage', shows: 'Open exports' },
  { name: 'the account', path: '/app/account', shows: 'Sign out everywhere' },
  { name: 'an address that is none', path: '/app/nothing', shows: 'There is no such page' },
]

for (const sight of SIGHTS) {
  promise(
    `${sight.name}: no barrier in either theme, and nothing beyond the edge of a phone`,
    async () => {
      const page = await open(sight.isSignedOut ? {} : { member: demo.owner })
      await show(page, sight)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        assert.deepEqual(await barriersOf(page), [], colorScheme)
      }
      await page.setViewportSize(SMALL)
      await show(page, sight)
      assert.deepEqual(await beyondEdge(page), [])
      assert.deepEqual(await barriersOf(page), [], 'on a phone')
      await page.setViewportSize(DESK)
    },
  )
}

async function show(page: Page, { path, shows, act }: Sight): Promise<void> {
  await page.goto(path)
  await expect(page.getByText(shows).filter({ visible: true }).first()).toBeVisible()
  await act?.(page)
  await settle(page)
}

/** Until nothing on the page stands for something that is still to come. */
async function settle(page: Page): Promise<void> {
  await expect(page.locator('.mantine-Skeleton-root, [aria-busy=true]')).toHaveCount(0)
  await page.evaluate(() => document.fonts.ready.then(() => null))
}

async function barriersOf(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze()
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  )
}

/** What makes the page wider than the screen. */
async function beyondEdge(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const root = document.documentElement
    if (root.scrollWidth <= root.clientWidth) return []
    return [...document.body.querySelectorAll('*')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1)
      .slice(0, 5)
      .map((element) => element.outerHTML.slice(0, 200))
  })
}

function clickButton(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('button', { name }).first().click()
    await expect(page.getByRole('dialog')).toBeVisible()
  }
}

function openTab(name: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole('tab', { name }).click()
    await expect(page.getByRole('tabpanel', { name })).toBeVisible()
  }
}

async function openFilterMenu(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'filter', exact: true }).click()
  await page.getByRole('option', { name: 'category', exact: true }).click()
  await expect(page.getByRole('option', { name: /billing/ })).toBeVisible()
}

async function openDelivery(page: Page): Promise<void> {
  await page.getByRole('listitem').getByRole('button').first().click()
  await expect(page.getByRole('dialog')).toContainText('Attempt 1')
}
