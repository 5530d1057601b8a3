import type { Page } from '@playwright/test'
import { expect } from './dashboard.ts'
import { clickButton, DIALOG, openTab, testPages } from './page-case.ts'

await testPages(({ webhookId, invitationPath, certificatePath, owner }, receiverUrl) => {
  const webhook = { path: `/app/webhooks/${webhookId}`, shows: 'Succeeded' }
  const keys = { path: '/app/keys', shows: 'Production key' }
  const company = '/app/company'
  return [
    { name: 'the sign-in page', path: '/app/keys', shows: 'Forgot password?', isSignedOut: true },
    { name: 'an invitation', path: invitationPath, shows: 'Join Acme', isSignedOut: true },
    { name: 'webhooks', path: '/app/webhooks', shows: receiverUrl },
    { name: 'a webhook', ...webhook },
    { name: 'webhook settings', ...webhook, act: openTab('Settings') },
    { name: 'the signature check', ...webhook, act: openTab('Signature check') },
    { name: 'a delivery', ...webhook, act: openDelivery, opens: DIALOG },
    {
      name: 'the dialog to retry deliveries',
      ...webhook,
      act: clickButton('Retry all now'),
      opens: DIALOG,
    },
    { name: 'keys', ...keys },
    { name: 'the dialog to create a key', ...keys, act: clickButton('Create key'), opens: DIALOG },
    { name: 'the custom permissions of a new key', ...keys, act: chooseCustom, opens: DIALOG },
    { name: 'the access check of a key', path: '/app/keys?tab=check', shows: 'Operation' },
    { name: 'the allowlist', path: '/app/keys?tab=allowlist', shows: 'Your current address' },
    { name: 'integrity', path: '/app/integrity', shows: 'The chain holds' },
    { name: 'a certificate', path: certificatePath, shows: 'Certificate of verification' },
    { name: 'workspaces', path: `${company}/workspaces`, shows: 'Staging' },
    { name: 'members', path: `${company}/members`, shows: owner.email },
    { name: 'activity', path: `${company}/activity`, shows: owner.email },
    { name: 'plan and usage', path: `${company}/usage`, shows: 'Open exports' },
    { name: 'the account page', path: '/app/account', shows: 'Sign out everywhere' },
    { name: 'a page that doesn’t exist', path: '/app/nothing', shows: 'Page not found' },
  ]
})

async function openDelivery(page: Page): Promise<void> {
  await page
    .getByRole('button', { name: /Succeeded/ })
    .first()
    .click()
  await expect(page.getByRole('dialog')).toContainText('Attempt 1')
}

async function chooseCustom(page: Page): Promise<void> {
  await clickButton('Create key')(page)
  await page.getByRole('combobox', { name: 'Permissions' }).click()
  await page.getByRole('option', { name: 'Custom' }).click()
  await expect(page.getByRole('group', { name: 'Custom permissions' })).toBeVisible()
}
