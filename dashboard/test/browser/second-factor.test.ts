import { text } from 'node:stream/consumers'
import type { Locator, Page } from '@playwright/test'
import {
  insertInvitation,
  insertResetLink,
} from '../../../server/src/tenancy/member/one-time-link-store.ts'
import { totpCode } from '../../../server/src/tenancy/sign-in/totp.ts'
import { findAccount } from '../../../server/src/tenancy/member/user-store.ts'
import type { CreatedCompany } from '../../../server/src/tenancy/create-company.ts'
import { callAs, signInAs } from '../../../server/test/harness/dashboard/dashboard.ts'
import { cookieIn, enter } from '../../../server/test/harness/sign-in/login.ts'
import { enableFactor, fromBase32 } from '../../../server/test/harness/sign-in/second-factor.ts'
import { expect, startDashboard } from './dashboard.ts'
import { assertAccessible, DIALOG } from './page-case.ts'
import { DESKTOP } from './visit.ts'

const STEP_MS = 30_000
const { annals, open, browserTest } = await startDashboard()
const { db } = annals.app.database

/**
 * Checks both themes and widths, the colors only within `part`, and then makes the page look as before. The pages
 * behind the dialogs are checked by pages-of-company.test.ts.
 */
async function checkLooks(page: Page, part?: string): Promise<void> {
  const size = page.viewportSize() ?? DESKTOP
  await page.emulateMedia({ colorScheme: 'light' })
  await assertAccessible(page, part)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(size)
}

/** Goes through the steps to set it up, and returns the app's secret and the recovery codes. */
async function setUp(
  form: Page | Locator,
  password: string,
): Promise<{ secret: Buffer; codes: string[] }> {
  await form.getByLabel(/^Password/).fill(password)
  await form.getByRole('button', { name: 'Continue' }).click()
  await expect(form.getByRole('img', { name: 'QR code for your authenticator app' })).toBeVisible()
  const shown = (await form.getByTestId('totp-secret').textContent()) ?? ''
  const secret = fromBase32(shown.replaceAll(' ', ''))
  await form.getByLabel('Code that the app shows').fill(totpCode(secret, Date.now()))
  await form.getByRole('button', { name: 'Turn on second factor' }).click()
  const list = form.getByTestId('recovery-codes')
  await expect(list).toBeVisible()
  return { secret, codes: ((await list.textContent()) ?? '').trim().split(/\s+/) }
}

async function enterPassword(page: Page, { user }: Pick<CreatedCompany, 'user'>): Promise<void> {
  await page.getByLabel('Email').fill(user.email)
  await page.getByLabel(/^Password/).fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.getByRole('heading', { name: 'Second factor' })).toBeVisible()
}

async function signOut(page: Page, email: string): Promise<void> {
  await page.getByRole('button', { name: email, exact: true }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible()
}

browserTest(
  'a member sets up a second factor, saves recovery codes, and signs in with either',
  async () => {
    const company = await annals.createCompany()
    const { user } = company
    const page = await open({ member: await enter(annals, user) })
    await page.goto('/app/account')
    await page.getByRole('button', { name: 'Set up second factor' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^Password/).fill('not the password')
    await page.getByRole('button', { name: 'Continue' }).click()
    await expect(page.getByRole('dialog')).toContainText('current password')
    const { secret, codes } = await setUp(dialog, user.password)
    expect(new Set(codes).size).toBe(10)
    // Only the button closes it.
    await page.keyboard.press('Escape')
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download codes' }).click()
    const saved = await text(await (await saving).createReadStream())
    for (const code of codes) expect(saved).toContain(code)
    await page.getByRole('button', { name: 'I’ve saved them' }).click()
    const section = page.getByRole('region', { name: 'Second factor' })
    await expect(section).toContainText('Recovery codes left: 10 of 10')
    await signOut(page, user.email)
    await enterPassword(page, company)
    await page.getByLabel('Code').fill('000000')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(page.getByRole('alert')).toContainText('The code is wrong')
    await page.getByLabel('Code').fill(totpCode(secret, Date.now() + STEP_MS))
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(section).toContainText('Recovery codes left: 10 of 10')
    await signOut(page, user.email)
    await enterPassword(page, company)
    await page.getByRole('button', { name: 'Use a recovery code' }).click()
    await page.getByLabel('Recovery code').fill(codes[0] ?? '')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await expect(section).toContainText('Recovery codes left: 9 of 10')
  },
)

browserTest('a member creates new recovery codes and turns the second factor off', async () => {
  const { user } = await annals.createCompany()
  const session = await enter(annals, user)
  const nowMs = Date.now()
  const { recoveryCodes } = await enableFactor(session.call, { password: user.password, nowMs })
  const page = await open({ member: session })
  await page.goto('/app/account')
  const confirm = async (action: string, code: string | undefined) => {
    await page.getByRole('button', { name: action }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^Password/).fill(user.password)
    await dialog.getByLabel('Code or recovery code').fill(code ?? '')
    await dialog.getByRole('button', { name: action }).click()
  }
  await confirm('Create new recovery codes', recoveryCodes[0])
  const list = page.getByTestId('recovery-codes')
  await expect(list).toBeVisible()
  const [fresh] = ((await list.textContent()) ?? '').trim().split(/\s+/)
  await page.getByRole('button', { name: 'I’ve saved them' }).click()
  await confirm('Turn off second factor', recoveryCodes[1])
  await expect(page.getByRole('dialog')).toContainText('The code is wrong or was already used')
  await page
    .getByRole('dialog')
    .getByLabel('Code or recovery code')
    .fill(fresh ?? '')
  await page.getByRole('dialog').getByRole('button', { name: 'Turn off second factor' }).click()
  await expect(page.getByRole('button', { name: 'Set up second factor' })).toBeVisible()
})

browserTest(
  'an owner requires a second factor, and a member with an open page is led to set it up',
  async () => {
    const company = await annals.createCompany()
    const { user } = company
    const session = await enter(annals, user)
    await enableFactor(session.call, { password: user.password, nowMs: Date.now() })
    const joined = await join(company)
    const page = await open({ member: joined })
    await page.goto('/app/integrity')
    await expect(page.getByRole('region', { name: 'Production' })).toBeVisible()
    const owner = await open({ member: session })
    await owner.goto('/app/company/members')
    const row = (email: string) => owner.getByRole('row').filter({ hasText: email })
    await expect(row(user.email)).toContainText('On')
    await expect(row(joined.email)).toContainText('Off')
    const setting = owner.getByRole('switch', { name: 'Require a second factor of all members' })
    await setting.click()
    await expect(owner.getByRole('dialog')).toContainText('1 member without a second factor')
    await owner.getByRole('button', { name: 'Require second factor' }).click()
    await expect(setting).toBeChecked()
    await page.getByRole('navigation', { name: 'Main', exact: true }).getByText('Webhooks').click()
    await expect(page.getByRole('heading', { name: 'Set up second factor' })).toBeVisible()
    await checkLooks(page)
    await page.reload()
    await expect(page.getByText('requires a second factor')).toBeVisible()
    await setUp(page, joined.password)
    await page.getByRole('button', { name: 'I’ve saved them' }).click()
    await expect(page.getByRole('heading', { name: 'Webhooks' })).toBeVisible()
    await page.goto('/app/account')
    await expect(page.getByRole('button', { name: 'Turn off second factor' })).toBeDisabled()
    await owner.reload()
    await expect(row(joined.email)).toContainText('On')
    await owner.getByRole('button', { name: `Actions for ${joined.email}` }).click()
    await owner.getByRole('menuitem', { name: 'Reset second factor' }).click()
    await owner.getByLabel(`Type ${joined.email} to confirm`).fill(joined.email)
    await owner.getByRole('button', { name: 'Reset second factor' }).click()
    await expect(row(joined.email)).toContainText('Off')
  },
)

/** An admin with a password, signed in. */
async function join({ company }: CreatedCompany) {
  const email = `joined-${company.id.slice(-12)}@example.com`
  const invitation = { companyId: company.id, email, role: 'ADMIN', createdBy: null } as const
  const { token } = await db
    .transaction()
    .execute((trx) => insertInvitation(trx, { ...invitation, workspaceIds: [], nowMs: Date.now() }))
  const password = 'staple battery'
  const response = await annals.call('POST', '/dashboard/links/use', { body: { token, password } })
  expect(response.status).toBe(200)
  const cookie = cookieIn(response)
  return { email, password, cookie, call: callAs(annals, cookie) }
}

browserTest('only an owner can require a second factor', async () => {
  const company = await annals.createCompany()
  const page = await open({ member: await signInAs(annals, company, 'ADMIN') })
  await page.goto('/app/company/members')
  const setting = page.getByRole('switch', { name: 'Require a second factor of all members' })
  await expect(setting).toHaveAccessibleDescription(
    'Your role (admin) can’t change how members sign in.',
  )
  await setting.click({ force: true })
  await expect(page.getByRole('dialog')).toHaveCount(0)
})

browserTest('a reset link sets the password and then asks for the second factor', async () => {
  const { user } = await annals.createCompany()
  const session = await enter(annals, user)
  const nowMs = Date.now()
  const app = await enableFactor(session.call, { password: user.password, nowMs })
  const account = await findAccount(db, user.email)
  if (!account) throw new Error('expected an account')
  const { token } = await insertResetLink(db, { ...account, createdBy: null, nowMs })
  const page = await open()
  await page.goto(`/app/link#${token}`)
  await page.getByLabel('New password').fill('staple battery')
  await page.getByRole('button', { name: 'Set password' }).click()
  await page.getByLabel('Code').fill(app.codeAt(Date.now() + STEP_MS))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page).toHaveURL(/\/app\/explorer/)
})

browserTest(
  'every step is accessible in both themes, without horizontal scrolling on a phone',
  async () => {
    const company = await annals.createCompany()
    const { user } = company
    const page = await open({ member: await enter(annals, user) })
    await page.goto('/app/account')
    await page.getByRole('button', { name: 'Set up second factor' }).click()
    await checkLooks(page, DIALOG)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/^Password/).fill(user.password)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await expect(dialog.getByLabel('QR code for your authenticator app')).toBeVisible()
    await checkLooks(page, DIALOG)
    const shown = (await page.getByTestId('totp-secret').textContent()) ?? ''
    const secret = fromBase32(shown.replaceAll(' ', ''))
    await dialog.getByLabel('Code that the app shows').fill(totpCode(secret, Date.now()))
    await dialog.getByRole('button', { name: 'Turn on second factor' }).click()
    await expect(page.getByTestId('recovery-codes')).toBeVisible()
    await checkLooks(page, DIALOG)
    await page.getByRole('button', { name: 'I’ve saved them' }).click()
    await expect(page.getByText('Recovery codes left: 10 of 10')).toBeVisible()
    await checkLooks(page)
    await page.getByRole('button', { name: 'Turn off second factor' }).click()
    await checkLooks(page, DIALOG)
    await page.getByRole('button', { name: 'Go back' }).click()
    await page.goto('/app/company/members')
    await page.getByRole('switch').click()
    await checkLooks(page, DIALOG)
    await page.getByRole('button', { name: 'Go back' }).click()
    await signOut(page, user.email)
    await enterPassword(page, company)
    await checkLooks(page)
  },
)
