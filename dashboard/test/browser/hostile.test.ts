import assert from 'node:assert/strict'
import type { Page } from '@playwright/test'
import { signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { sendEvents } from '../../../server/test/harness/dashboard/explorer.ts'
import { startReceiver } from '../../../server/test/harness/webhook/receiver.ts'
import { expect, startDashboard } from './dashboard.ts'

const { annals, open, browserTest } = await startDashboard()

/** If a page treats a value as markup, an element with this attribute appears, or a script sets it. */
const MARK = 'data-planted'

function hostile(where: string): string {
  return `${where}"'><img src=x ${MARK} onerror="document.body.setAttribute('${MARK}','')"><script ${MARK}></script>{{7*7}}`
}

async function expectNoElement(page: Page): Promise<void> {
  assert.equal(await page.locator(`[${MARK}]`).count(), 0, page.url())
}

/** An email address can't contain spaces, so this is the most that fits. */
const HOSTILE_ADDRESS = `"'><b/${MARK}>@example.com`

const EVENT = {
  category: hostile('category'),
  action: hostile('action'),
  actor: { id: hostile('actor'), email: HOSTILE_ADDRESS, role: hostile('role') },
  resource: { type: hostile('type'), id: hostile('resource') },
  metadata: { [hostile('key')]: [hostile('value'), { [hostile('inner')]: hostile('deep') }] },
}

browserTest(
  'markup in an event is shown as text in the list, the event panel and the filters',
  async () => {
    const company = await annals.createCompany()
    const [id] = await sendEvents(annals, company.workspaceKey, [EVENT])
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    const filters = new URLSearchParams({ action: EVENT.action, actorEmail: EVENT.actor.email })
    await page.goto(`/app/explorer?columns=time,action,category,actor,resource&${filters}&text=img`)
    const events = page.getByRole('grid', { name: 'Events' })
    for (const text of [EVENT.action, EVENT.category, EVENT.actor.email]) {
      await expect(events.getByRole('gridcell').filter({ hasText: text })).toHaveCount(1)
      await expect(page.getByText(text, { exact: true }).first()).toBeVisible()
    }
    await expectNoElement(page)
    await page.goto(`/app/explorer?event=${id}`)
    const event = page.getByRole('complementary', { name: 'Event' })
    await expect(event.getByRole('region', { name: 'Chain' })).toContainText('Verified')
    const texts = [
      EVENT.category,
      EVENT.action,
      ...Object.values(EVENT.actor),
      ...Object.values(EVENT.resource),
      ...['key', 'value', 'inner', 'deep'].map(hostile),
    ]
    for (const text of texts) await expect(event).toContainText(text)
    await page.getByRole('button', { name: 'Add filter', exact: true }).click()
    await page.getByRole('option', { name: 'action', exact: true }).click()
    await expect(page.getByRole('option').filter({ hasText: EVENT.action })).toBeVisible()
    await expectNoElement(page)
  },
)

browserTest(
  'an event with a reversed text or a hidden character doesn’t read like another one',
  async () => {
    const company = await annals.createCompany()
    const [id] = await sendEvents(annals, company.workspaceKey, [
      {
        category: 'files',
        action: 'report\u202efdp.exe',
        actor: { email: 'ana@example.com', id: 'ana\u200b' },
        metadata: { 'na\u2066me': 'in\u202evoice' },
      },
    ])
    const page = await open({ member: await signInAs(annals, company, 'OWNER') })
    await page.goto(`/app/explorer?event=${id}`)
    const action = 'report⟨U+202E⟩fdp.exe'
    await expect(page.getByRole('gridcell', { name: action })).toBeVisible()
    const event = page.getByRole('complementary', { name: 'Event' })
    for (const text of [action, 'ana⟨U+200B⟩', 'na⟨U+2066⟩me', 'in⟨U+202E⟩voice']) {
      await expect(event).toContainText(text)
    }
  },
)

browserTest('markup in names and receiver responses is shown as text', async () => {
  await using receiver = await startReceiver({ status: 400, body: hostile('response') })
  const company = await annals.createCompany({
    company: hostile('company'),
    workspaces: [hostile('workspace')],
  })
  const member = await signInAs(annals, company, 'OWNER')
  const workspaceId = company.workspace.id
  const make = async (path: string, body: object) => {
    const { status, json, text } = await member.call('POST', `/dashboard/${path}`, { body })
    assert(status < 300, `${path}: ${text}`)
    return json
  }
  await make('keys', { name: hostile('key'), scope: 'WORKSPACE', workspaceId })
  await make(`workspaces/${workspaceId}/projects`, { name: hostile('project') })
  const query = { action: EVENT.action }
  await make('explorer/views', {
    name: hostile('view'),
    visibility: 'WORKSPACE',
    workspaceId,
    query,
  })
  const filters = { action: EVENT.action }
  await make('exports', { source: 'HOT', format: 'CSV', filters })
  const webhook = await make('webhooks', { workspaceId, url: receiver.url, secretLabel: 'a' })
  await sendEvents(annals, company.workspaceKey, [EVENT])
  await receiver.waitFor(1)
  const page = await open({ member })
  const shown = [
    ['/app/keys', 'key'],
    ['/app/company/workspaces', 'workspace'],
    ['/app/company/activity', 'project'],
    ['/app/company/usage', 'workspace'],
    ['/app/account', 'company'],
    ['/app/exports', 'action'],
    ['/app/integrity', 'workspace'],
  ] as const
  for (const [path, where] of shown) {
    await page.goto(path)
    await expect(page.locator('body')).toContainText(hostile(where))
    await expectNoElement(page)
  }
  await page.goto(`/app/webhooks/${webhook.id}`)
  await page.getByRole('listitem').getByRole('button').first().click()
  await expect(page.getByRole('dialog')).toContainText(hostile('response'))
  await expectNoElement(page)
  await page.goto('/app/explorer')
  await page.getByRole('button', { name: 'Views' }).click()
  await expect(page.getByText(hostile('view'))).toBeVisible()
  await expectNoElement(page)
})
