import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { readsFrom } from '../../src/ledger/replica/chain-reads.ts'
import { Searches } from '../../src/outlet/explorer/searches.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const { db } = annals.app.database

async function openSearches() {
  const { company, workspace, workspaceKey } = await annals.createCompany()
  await storeEvents(annals, workspaceKey, [{ category: 'c', action: 'a' }])
  const scope = { companyId: company.id, workspaceIds: [workspace.id], hotSinceMs: 0 }
  /** A search that keeps its connection for the given time. */
  const search = (searches: Searches, seconds: number) =>
    searches.readEach(scope, (trx) => sql`select pg_sleep(${seconds})`.execute(trx))
  return { search, workspaceKey }
}

const SEARCH_SECONDS = 0.6
/** Four run at once, so without pauses they take 1.8 seconds. */
const SEARCHES = 12

test('a company that keeps the database busy pauses between its searches while others are active', async () => {
  const { search } = await openSearches()
  const { workspaceKey: key } = await annals.createCompany()
  const searches = new Searches(readsFrom(annals.app.database))
  const over = new AbortController()
  const useAsOther = async () => {
    while (!over.signal.aborted) await annals.call('GET', '/v1/keys/status', { key })
  }
  const other = useAsOther()
  const startedAtMs = performance.now()
  await Promise.all(Array.from({ length: SEARCHES }, () => search(searches, SEARCH_SECONDS)))
  const ms = performance.now() - startedAtMs
  over.abort()
  await other
  assert(ms > 3_500, `${ms} ms`)
})

test('a company that searches often does not pause for the slow searches of another', async () => {
  const hog = await openSearches()
  const victim = await openSearches()
  const searches = new Searches(readsFrom(annals.app.database))
  const over = new AbortController()
  const searchSlowly = async () => {
    while (!over.signal.aborted) await hog.search(searches, 1.5)
  }
  const slow = Array.from({ length: 4 }, searchSlowly)
  let slowestMs = 0
  for (let round = 0; round < 12; round += 1) {
    // Makes both companies active.
    await annals.call('GET', '/v1/keys/status', { key: hog.workspaceKey })
    await annals.call('GET', '/v1/keys/status', { key: victim.workspaceKey })
    const startedAtMs = performance.now()
    await victim.search(searches, 0.3)
    slowestMs = Math.max(slowestMs, performance.now() - startedAtMs)
    await sql`select pg_sleep(0.2)`.execute(db)
  }
  over.abort()
  await Promise.all(slow)
  assert(slowestMs < 1_500, `${slowestMs} ms`)
})
