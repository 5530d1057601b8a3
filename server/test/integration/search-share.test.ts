import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { Searches } from '../../src/outlet/explorer/searches.ts'
import { storeEvents } from '../harness/exports.ts'
import { startTestApp } from '../harness/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const SEARCH_SECONDS = 0.6
/** Four run at once, so without pauses they take 1.8 seconds. */
const SEARCHES = 12

test('a company that keeps the database busy pauses between its searches while others are active', async () => {
  const { company, workspace, workspaceKey } = await annals.createCompany()
  const { workspaceKey: key } = await annals.createCompany()
  await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  const searches = new Searches(annals.app.database.db)
  const scope = { companyId: company.id, workspaceIds: [workspace.id], hotSinceMs: 0 }
  const search = () =>
    searches.readEach(scope, (db) => sql`select pg_sleep(${SEARCH_SECONDS})`.execute(db))
  const over = new AbortController()
  const useAsOther = async () => {
    while (!over.signal.aborted) await annals.call('GET', '/v1/keys/status', { key })
  }
  const other = useAsOther()
  const startedAtMs = performance.now()
  await Promise.all(Array.from({ length: SEARCHES }, search))
  const ms = performance.now() - startedAtMs
  over.abort()
  await other
  assert(ms > 3_500, `${ms} ms`)
})
