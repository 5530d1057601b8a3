import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId } from '../../platform/id.ts'
import { applyGroups, combinedGrant, isSameGrant } from './group-grant.ts'
import { hasCompanyAccess, type MemberGrant } from '../member/member-store.ts'
import { ROLES } from '../member/user-store.ts'

const IDS = [newId<'workspace'>(), newId<'workspace'>(), newId<'workspace'>()]
const grants = fc
  .record({ role: fc.constantFrom(...ROLES), ids: fc.subarray(IDS, { minLength: 1 }) })
  .map(({ role, ids }): MemberGrant => ({
    role,
    workspaceIds: hasCompanyAccess(role) ? null : ids,
  }))
const rankOf = ({ role }: MemberGrant) => ROLES.indexOf(role)

test('several groups grant the highest role, on the workspaces of all groups that grant it', () => {
  const [one, two, three] = IDS
  assert(one && two && three)
  const combined = combinedGrant([
    { role: 'VIEWER', workspaceIds: [three] },
    { role: 'ANALYST', workspaceIds: [one] },
    { role: 'ANALYST', workspaceIds: [two] },
  ])
  assert.deepEqual(combined, { role: 'ANALYST', workspaceIds: [one, two] })
  assert.equal(combinedGrant([]), null)
})

test('whatever groups come and go, a member ends with the role that they had without them', () => {
  fc.assert(
    fc.property(grants, fc.array(fc.option(grants), { maxLength: 6 }), (own, sequence) => {
      let current = own
      let state: Parameters<typeof applyGroups>[1] = { granted: null, own: null }
      for (const desired of [...sequence, null]) {
        const outcome = applyGroups(current, state, desired)
        assert(outcome.grant, 'a member with a role of their own is never removed')
        assert(rankOf(outcome.grant) <= rankOf(own), 'groups never lower a role')
        current = outcome.grant
        state = outcome.state
      }
      assert(isSameGrant(current, own))
    }),
  )
})

test('a member who joined through a group has no role after leaving the last group', () => {
  fc.assert(
    fc.property(grants, fc.array(grants, { maxLength: 6 }), (first, sequence) => {
      let current = first
      let state: Parameters<typeof applyGroups>[1] = { granted: first, own: null }
      for (const desired of sequence) {
        const outcome = applyGroups(current, state, desired)
        assert.deepEqual(outcome.grant, desired)
        current = outcome.grant ?? current
        state = outcome.state
      }
      assert.equal(applyGroups(current, state, null).grant, null)
    }),
  )
})
