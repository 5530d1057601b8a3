import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import { decideEntry, type KnownPerson } from './identity-entry.ts'

const companyId = newId<'company'>()
const account = {
  userId: newId<'user'>(),
  companyId,
  email: 'a@example.com',
  role: 'ADMIN',
} as const
const grant = { role: 'ADMIN', workspaceIds: null } as const
const unknownPerson: KnownPerson = {
  subject: 'subject',
  email: 'a@example.com',
  linked: null,
  holder: null,
  mapped: new Map(),
}
const invitation: NonNullable<KnownPerson['invitation']> = {
  id: newId<'link'>(),
  kind: 'INVITATION',
  companyId,
  email: 'a@example.com',
  role: 'ADMIN',
  workspaceIds: [],
}

/** What was decided, and for refusals the reason. */
function entryOf(person: Partial<KnownPerson>): string {
  const entry = decideEntry({ ...unknownPerson, ...person })
  return entry.kind === 'refused' ? entry.reason : entry.kind
}

test('the subject decides before the address, and the address before invitations and groups', () => {
  const mapped = new Map([[companyId, grant]])
  const holder = { ...account, subject: null }
  assert.equal(entryOf({ linked: account, holder, mapped }), 'known')
  assert.equal(entryOf({ holder, mapped }), 'link')
  assert.equal(entryOf({ mapped }), 'mapped')
  assert.equal(entryOf({ invitation, mapped }), 'invited')
  assert.equal(entryOf({}), 'no_account')
})

test('refuses a person whose address has an account that is linked to another person', () => {
  assert.equal(entryOf({ holder: { ...account, subject: 'other' } }), 'other_account')
})

test('a person can enter an account that was linked to them between the two reads', () => {
  assert.equal(entryOf({ holder: { ...account, subject: 'subject' } }), 'known')
})

test('an invitation works once, for one address, and not for people who have an account', () => {
  assert.equal(entryOf({ invitation: { ...invitation, email: 'b@example.com' } }), 'other_address')
  assert.equal(entryOf({ invitation: null }), 'invitation_over')
  assert.equal(entryOf({ invitation, linked: account }), 'has_account')
  assert.equal(entryOf({ invitation, holder: { ...account, subject: null } }), 'has_account')
})

test('a person whose groups are mapped in several companies is refused', () => {
  const mapped = new Map([
    [companyId, grant],
    [newId<'company'>(), grant],
  ])
  assert.equal(entryOf({ mapped }), 'several_companies')
})
