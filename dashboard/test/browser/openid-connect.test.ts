import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, beforeEach } from 'node:test'
import type { Page } from '@playwright/test'
import { insertInvitation } from '../../../server/src/tenancy/member/one-time-link-store.ts'
import { enter } from '../../../server/test/harness/sign-in/login.ts'
import { startIdentityProvider } from '../../../server/test/harness/sign-in/identity-provider.ts'
import { enableFactor } from '../../../server/test/harness/sign-in/second-factor.ts'
import { expect, startDashboard } from './dashboard.ts'
import { assertAccessible } from './page-case.ts'
import { DESKTOP } from './visit.ts'

/** The service must know its public URL before it listens, so this server redirects to it. */
let serviceUrl = ''
const entrance = createServer((request, response) => {
  response.writeHead(302, { location: `${serviceUrl}${request.url ?? ''}` }).end()
})
entrance.listen(0, '127.0.0.1')
await once(entrance, 'listening')
after(() => {
  entrance.close()
  entrance.closeAllConnections()
})
const address = entrance.address()
const port = typeof address === 'object' && address !== null ? address.port : 0
const provider = await startIdentityProvider({ publicUrl: `http://127.0.0.1:${port}` })
after(() => provider[Symbol.asyncDispose]())
const { annals, open, browserTest } = await startDashboard({ env: provider.env })
serviceUrl = annals.url

beforeEach(() => provider.setFault(null))

let persons = 0

function addPerson(): { id: string; email: string } {
  persons += 1
  const id = `person-${persons}`
  const email = `${id}@example.com`
  provider.people.set(id, { email, email_verified: true })
  return { id, email }
}

/** Checks both themes and widths, and restores the page's look. */
async function checkLooks(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: 'light' })
  await assertAccessible(page)
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(DESKTOP)
}

/** Clicks through the page of the provider. */
async function signInAtProvider(page: Page, button: string, id: string): Promise<void> {
  await page.getByRole('button', { name: button }).click()
  await page.getByRole('button', { name: id, exact: true }).click()
}

// A separate browser context for each test, because the provider has its own sessions.
const window = { context: {} }

browserTest('a member signs in with the identity provider, and unlinks the account', async () => {
  const { id, email } = addPerson()
  await annals.createCompany({ email })
  const page = await open(window)
  await page.goto('/app/keys?tab=allowlist')
  await expect(page.getByRole('button', { name: 'Sign in with Example ID' })).toBeVisible()
  await checkLooks(page)
  await signInAtProvider(page, 'Sign in with Example ID', id)
  await expect(page.getByLabel('IP addresses and CIDR ranges, one per line')).toBeVisible()
  expect(new URL(page.url()).href).toBe(`${annals.url}/app/keys?tab=allowlist`)
  await page.goto('/app/account')
  await expect(page.getByText('Linked to Example ID')).toBeVisible()
  await checkLooks(page)
  await page.getByRole('button', { name: 'Unlink account' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Unlink account' }).click()
  await expect(page.getByText('Your account is not linked to Example ID.')).toBeVisible()
})

browserTest('the sign-in page says why a person cannot sign in', async () => {
  const { id } = addPerson()
  const page = await open(window)
  await page.goto('/app/explorer?range=7d')
  await signInAtProvider(page, 'Sign in with Example ID', id)
  await expect(page.getByRole('alert')).toContainText('You have no account here.')
  expect(new URL(page.url()).href).toBe(`${annals.url}/app/explorer?range=7d`)
  await checkLooks(page)
  await page.reload()
  await expect(page.getByRole('button', { name: 'Sign in with Example ID' })).toBeVisible()
  await expect(page.getByRole('alert')).toHaveCount(0)
})

browserTest('the sign-in page says that the provider is not available', async () => {
  const { id } = addPerson()
  const page = await open(window)
  await page.goto('/app/explorer')
  await page.getByRole('button', { name: 'Sign in with Example ID' }).click()
  await expect(page.getByRole('button', { name: id, exact: true })).toBeVisible()
  provider.setFault(({ path }) =>
    path === '/token' ? new Response('oops', { status: 503 }) : null,
  )
  await page.getByRole('button', { name: id, exact: true }).click()
  await expect(page.getByRole('alert')).toContainText('Example ID is not available at the moment.')
})

browserTest('a member with a second factor enters a code after the provider', async () => {
  const { id, email } = addPerson()
  const { user } = await annals.createCompany({ email })
  const signedIn = await enter(annals, user)
  const factor = await enableFactor(signedIn.call, { password: user.password, nowMs: Date.now() })
  const page = await open(window)
  await page.goto('/app/keys')
  await signInAtProvider(page, 'Sign in with Example ID', id)
  await expect(page.getByRole('heading', { name: 'Second factor' })).toBeVisible()
  expect(new URL(page.url()).hash).toBe('')
  await page.getByRole('button', { name: 'Use a recovery code' }).click()
  await page.getByLabel('Recovery code').fill(factor.recoveryCodes[0] ?? '')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await expect(page.getByRole('button', { name: email, exact: true })).toBeVisible()
  expect(new URL(page.url()).pathname).toBe('/app/keys')
})

browserTest('an invited person joins with the provider, without a password', async () => {
  const { id, email } = addPerson()
  const { company } = await annals.createCompany()
  const { db } = annals.app.database
  const { token } = await db.transaction().execute((trx) =>
    insertInvitation(trx, {
      companyId: company.id,
      email,
      role: 'ADMIN',
      workspaceIds: [],
      createdBy: null,
      nowMs: Date.now(),
    }),
  )
  const page = await open(window)
  await page.goto(`/app/link#${token}`)
  await expect(page.getByRole('button', { name: 'Join with Example ID' })).toBeVisible()
  await checkLooks(page)
  await signInAtProvider(page, 'Join with Example ID', id)
  await expect(page.getByRole('button', { name: email, exact: true })).toBeVisible()
  await page.goto('/app/account')
  await expect(page.getByText('You have no password.')).toBeVisible()
  await expect(page.getByRole('button', { name: 'Unlink account' })).toBeDisabled()
  await checkLooks(page)
  await page.getByRole('button', { name: 'Set up second factor' }).click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByLabel(/^Password/)).toHaveCount(0)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  await expect(dialog.getByTestId('totp-secret')).toBeVisible()
})
