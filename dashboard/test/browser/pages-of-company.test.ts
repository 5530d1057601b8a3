import type { Page } from '@playwright/test'
import { expect } from './dashboard.ts'
import { clickButton, openTab, promiseSights } from './sight.ts'

await promiseSights(({ webhookId, invitationPath, owner }, receiverUrl) => {
  const webhook = { path: `/app/webhooks/${webhookId}`, shows: 'Delivered' }
  const keys = { path: '/app/keys', shows: 'Production key' }
  const company = '/app/company'
  return [
    { name: 'the sign-in', path: '/app/keys', shows: 'I have forgotten', isSignedOut: true },
    { name: 'an invitation', path: invitationPath, shows: 'Join Acme', isSignedOut: true },
    { name: 'webhooks', path: '/app/webhooks', shows: receiverUrl },
    { name: 'a webhook', ...webhook },
    { name: 'the settings of a webhook', ...webhook, act: openTab('Settings') },
    { name: 'the signature check', ...webhook, act: openTab('Signature check') },
    { name: 'a delivery', ...webhook, act: openDelivery },
    { name: 'keys', ...keys },
    { name: 'the form of a new key', ...keys, act: clickButton('Create a key') },
    { name: 'the question whether a key may', path: '/app/keys?tab=check', shows: 'May the key' },
    { name: 'the allowlist', path: '/app/keys?tab=allowlist', shows: 'Your address now' },
    { name: 'integrity', path: '/app/integrity', shows: 'The chain holds' },
    { name: 'workspaces', path: `${company}/workspaces`, shows: 'Staging' },
    { name: 'members', path: `${company}/members`, shows: owner.email },
    { name: 'activity', path: `${company}/activity`, shows: owner.email },
    { name: 'plan and usage', path: `${company}/usage`, shows: 'Open exports' },
    { name: 'the account', path: '/app/account', shows: 'Sign out everywhere' },
    { name: 'an address that is none', path: '/app/nothing', shows: 'There is no such page' },
  ]
})

async function openDelivery(page: Page): Promise<void> {
  await page
    .getByRole('button', { name: /Delivered/ })
    .first()
    .click()
  await expect(page.getByRole('dialog')).toContainText('Attempt 1')
}
