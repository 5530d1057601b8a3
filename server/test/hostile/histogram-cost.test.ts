import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startTestApp } from '../harness/app/start-app.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { search, sendEvents } from '../harness/dashboard/explorer.ts'
import { copyRows } from '../harness/database/copy-rows.ts'
import { query } from '../harness/database/engine.ts'
import { LoopProbe } from '../harness/timing/loop-probe.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/** Of CPU time. The best of several tries counts, because garbage collection and compilation only add to it. */
const PIECE_MS_MAX = 20
const TRIES = 4
const WORKSPACES = 8
const VALUES = 2_500

test('counts of many workspaces are added up in slices', async () => {
  const company = await annals.createCompany({
    workspaces: ['W0', ...Array.from({ length: WORKSPACES - 1 }, (_, nth) => `W${nth + 1}`)],
  })
  for (const { workspaceKey } of company.workspaces) {
    await sendEvents(annals, workspaceKey, [{ category: 'c', action: 'a', actor: { id: 'z' } }])
  }
  // Different values in each workspace, with one event each.
  await copyRows(annals.database.connection, {
    table: 'event',
    changes: `jsonb_build_object('seq', nth, 'actor_id', t.workspace_id || ':' || nth,
      'id', left(t.id::text, 24) || 'fff' || lpad(to_hex(nth), 9, '0'))`,
    from: `event as t, generate_series(2, ${VALUES}) as nth where company_id = '${company.company.id}'`,
  })
  await query(
    annals.database.connection,
    `update chain_head set seq = ${VALUES} where workspace_id in (select workspace_id from event)`,
  )
  const member = await signInAs(annals, company, 'OWNER')
  const probe = new LoopProbe()
  for (const [path, total] of [
    [`/dashboard/events/metrics/histogram${search({ by: 'actorId' })}`, WORKSPACES * VALUES],
    [`/dashboard/events/filter-options${search({ field: 'actorId' })}`, null],
  ] as const) {
    const triesMs: number[] = []
    while (triesMs.length < TRIES && !triesMs.some((ms) => ms <= PIECE_MS_MAX)) {
      const work = async () => {
        const { status, json, text } = await member.call('GET', path)
        assert.equal(status, 200, text)
        if (total !== null) assert.deepEqual([json.total, json.isGrouped], [total, true])
      }
      triesMs.push(await probe.longestTurnMs(work))
    }
    assert(
      triesMs.some((ms) => ms <= PIECE_MS_MAX),
      `${path}: ${triesMs.join(', ')} ms`,
    )
  }
})
