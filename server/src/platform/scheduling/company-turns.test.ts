import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CompanyId, newId } from '../id.ts'
import { CompanyTurns } from './company-turns.ts'

test('a company with much work delays another by one turn', async () => {
  const [busy, rare] = [newId<'company'>(), newId<'company'>()]
  const queue = [...Array.from({ length: 4 }, () => busy), rare, rare]
  const claim = async (except: readonly CompanyId[]) => {
    const index = queue.findIndex((companyId) => !except.includes(companyId))
    return index < 0 ? null : (queue.splice(index, 1)[0] ?? null)
  }
  const turns = new CompanyTurns()
  const order: string[] = []
  for (let nth = 0; nth < 7; nth += 1) {
    const companyId = await turns.next(claim, (claimed) => claimed)
    order.push(companyId === busy ? 'busy' : companyId === rare ? 'rare' : 'none')
  }
  assert.deepEqual(order, ['busy', 'rare', 'busy', 'rare', 'busy', 'busy', 'none'])
})
