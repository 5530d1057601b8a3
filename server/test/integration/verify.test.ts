import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, test } from 'node:test'
import { sql } from 'kysely'
import { confirmChain } from '../../src/outlet/verify/confirm-chain.ts'
import { type ChainVerdict, verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { verifyRange } from '../../src/outlet/verify/verify-range.ts'
import { newId } from '../../src/platform/id.ts'
import type { Database } from '../../src/platform/pg/database.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { query } from '../harness/database/engine.ts'
import { tamperWith } from '../harness/database/tamper.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

const { connection } = annals.database
const tenant = await annals.createCompany({ workspaces: ['Production', 'Empty'] })
const workspaceId = tenant.workspace.id
/** The tests tamper with the third of seven events. */
const BAD_SEQ = 3
const EVENTS = 7
const ids: string[] = []
const idOf = (seq: number) => ids[seq - 1] ?? ''

before(async () => {
  const events = Array.from({ length: EVENTS }, (_, index) => ({
    category: 'c',
    action: `a${index}`,
    projectId: tenant.project.id,
    actor: { id: 'ada', email: 'ada@example.com', role: 'admin' },
    resource: { type: 'invoice', id: `inv-${index}` },
    metadata: { index },
  }))
  const response = await annals.call('POST', '/v1/events/batch', {
    key: tenant.workspaceKey,
    body: { events },
  })
  for (const { id } of response.json.results) ids.push(id)
})

const tamper = (statement: string, check: (database: Database) => Promise<void>): Promise<void> =>
  tamperWith(connection, statement, check)

const verify = (database: Database, eventsPerRead: number): Promise<ChainVerdict> =>
  verifyChain(database, annals.app.archive, workspaceId, { eventsPerRead })

/** Verifies the chain in ranges of this many events. Null if it isn't confirmed. */
const confirm = (database: Database, eventsPerRange: number): Promise<number | null> =>
  confirmChain(database.db, {
    workspaceId,
    eventsPerRange,
    rangesAheadMax: 3,
    open: async () => ({ start: null, tree: null }),
    runRange: (range) => verifyRange(database, annals.app.archive, range, { eventsPerRead: 2 }),
  })

/** Ranges that end before, at and after the event that the tests tamper with. */
async function assertUnconfirmed(database: Database): Promise<void> {
  for (const eventsPerRange of [1, 3]) {
    assert.equal(await confirm(database, eventsPerRange), null, `ranges of ${eventsPerRange}`)
  }
}

/** The same event is reported, however long the runs are in which the chain is read. */
async function assertFound(
  database: Database,
  expected: { seq: number; id: string | null },
): Promise<string> {
  const problems = new Set<string>()
  for (const eventsPerRead of [1, 2, 3, 4, 2_000]) {
    const verdict = await verify(database, eventsPerRead)
    assert(!verdict.ok, 'the tampering was not detected')
    const { seq, id, problem } = verdict
    assert.deepEqual({ seq, id }, expected, problem)
    problems.add(problem)
  }
  assert.equal(problems.size, 1)
  await assertUnconfirmed(database)
  return [...problems].join()
}

async function assertHolds(database: Database): Promise<void> {
  for (const eventsPerRead of [1, 2, 3, 2_000]) {
    const verdict = await verify(database, eventsPerRead)
    assert.deepEqual(verdict, { ok: true, workspaceId, events: EVENTS })
  }
  for (const eventsPerRange of [1, 3, EVENTS, 2_000]) {
    assert.equal(await confirm(database, eventsPerRange), EVENTS)
  }
}

const row = (seq: number) => `where workspace_id = '${workspaceId}' and seq = ${seq}`
const edit = (set: string) => `update event set ${set} ${row(BAD_SEQ)}`

test('an unmodified ledger is valid', async () => {
  await assertHolds(annals.app.database)
  assert.equal(await assertChainsHold(annals), EVENTS)
})

/** For every column, edits that leave the row plausible. */
const EDITS: Record<string, string[]> = {
  seq: ['seq = 100'],
  ts: [`ts = ts + interval '1 millisecond'`, `ts = ts + interval '1 microsecond'`],
  received_at: [
    `received_at = received_at - interval '1 second'`,
    `received_at = received_at + interval '1 microsecond'`,
  ],
  id: [`id = overlay(id::text placing 'abcdef' from 31)::uuid`],
  workspace_id: [`workspace_id = '${newId()}'`],
  company_id: [`company_id = '${newId()}'`],
  project_id: ['project_id = null', `project_id = '${newId()}'`],
  trace_id: ['trace_id = null', `trace_id = '${newId()}'`],
  hash: [`hash = decode(repeat('ab', 32), 'hex')`, `hash = substr(hash, 2)`],
  prev_hash: [`prev_hash = decode(repeat('ab', 32), 'hex')`, `prev_hash = ''`],
  category: [`category = 'C'`, `category = ''`],
  action: [`action = 'other'`],
  actor_id: [`actor_id = 'eve'`, 'actor_id = null', `actor_id = 'ada","role":"admin'`],
  actor_email: [`actor_email = 'eve@example.com'`, 'actor_email = null'],
  resource_type: [`resource_type = 'user'`, 'resource_type = null'],
  resource_id: [`resource_id = 'inv-9'`, 'resource_id = null'],
  actor: [`actor = replace(actor, 'ada', 'eve')`, 'actor = null', `actor = actor || ' '`],
  resource: [`resource = replace(resource, 'inv', 'INV')`, 'resource = null', `resource = '{'`],
  metadata: [`metadata = '{"index":3}'`, 'metadata = null', `metadata = '{}'`],
  sealed: [
    `sealed = '{}'`,
    `sealed = replace(sealed, 'metadata', 'resource')`,
    `sealed = sealed || ' '`,
    `sealed = (select sealed from event ${row(BAD_SEQ + 1)})`,
  ],
  salts: [
    `salts = '{}'`,
    `salts = (select salts from event ${row(BAD_SEQ + 1)})`,
    `salts = upper(salts)`,
  ],
}

test('the tampering tests cover every column of the table', async () => {
  const columns = await query(
    connection,
    `select column_name as name from information_schema.columns where table_name = 'event'`,
  )
  assert.deepEqual(
    columns.map(({ name }) => String(name)).toSorted(),
    Object.keys(EDITS).toSorted(),
  )
})

for (const [column, sets] of Object.entries(EDITS)) {
  test(`detects an edit of ${column}, and names the event`, async () => {
    for (const set of sets) {
      await tamper(edit(set), async (database) => {
        const found = sql<{ id: string }>`select id from event ${sql.raw(row(BAD_SEQ))}`
        const [stored] = (await found.execute(database.db)).rows
        // If the event is no longer at its position, the next one is the first that doesn't follow.
        await assertFound(
          database,
          stored ? { seq: BAD_SEQ, id: stored.id } : { seq: BAD_SEQ + 1, id: idOf(BAD_SEQ + 1) },
        )
      })
    }
  })
}

test('detects the removal of the first event, one in the middle, the last, and all', async () => {
  await tamper(`delete from event ${row(1)}`, async (database) => {
    await assertFound(database, { seq: 2, id: idOf(2) })
  })
  await tamper(`delete from event ${row(4)}`, async (database) => {
    await assertFound(database, { seq: 5, id: idOf(5) })
  })
  await tamper(`delete from event ${row(EVENTS)}`, async (database) => {
    assert.match(await assertFound(database, { seq: EVENTS, id: null }), /missing/)
  })
  await tamper(`delete from event where workspace_id = '${workspaceId}'`, async (database) => {
    assert.match(await assertFound(database, { seq: 1, id: null }), /missing/)
  })
})

test('detects two swapped events', async () => {
  const move = (from: number, to: number) => `update event set seq = ${to} ${row(from)};`
  await tamper(move(3, 99) + move(4, 3) + move(99, 4), async (database) => {
    await assertFound(database, { seq: 3, id: idOf(4) })
  })
})

/** Above every other id, so that it lands in the default partition, which has its own index. */
const PLANTED = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
const plant = (seq: number, fromSeq: number) => `
  insert into event
  select (jsonb_populate_record(e, '{"seq":${seq},"id":"${PLANTED}"}')).*
    from event e ${row(fromSeq)}`

test('detects an inserted event, wherever it is', async () => {
  for (const seq of [-5, 0]) {
    await tamper(plant(seq, 1), async (database) => {
      assert.match(await assertFound(database, { seq, id: PLANTED }), /inserted before event 1/)
    })
  }
  for (let seq = 1; seq <= EVENTS; seq += 1) {
    await tamper(plant(seq, seq), async (database) => {
      for (const eventsPerRead of [1, 2, 3, 4, 2_000]) {
        const verdict = await verify(database, eventsPerRead)
        assert(!verdict.ok && verdict.seq === seq, `seq ${seq} in runs of ${eventsPerRead}`)
      }
      await assertUnconfirmed(database)
    })
  }
  await tamper(plant(EVENTS + 1, EVENTS), async (database) => {
    await assertFound(database, { seq: EVENTS + 1, id: PLANTED })
  })
})

test('detects a moved head', async () => {
  const head = (set: string, id: string = workspaceId) =>
    `update chain_head h set ${set} where h.workspace_id = '${id}'`
  const last = { seq: EVENTS, id: idOf(EVENTS) }
  await tamper(
    head(`hash = repeat('ab', 32)`),
    async (database) => void (await assertFound(database, last)),
  )
  await tamper(
    head(`last_id = '${newId()}'`),
    async (database) => void (await assertFound(database, last)),
  )
  await tamper(head(`seq = ${EVENTS + 1}`), async (database) => {
    await assertFound(database, { seq: EVENTS + 1, id: null })
  })
  const back = `seq = e.seq, hash = encode(e.hash, 'hex'), last_id = e.id
                from (select * from event ${row(5)}) e`
  await tamper(head(back), async (database) => {
    await assertFound(database, { seq: 6, id: idOf(6) })
  })
  await tamper(`delete from chain_head where workspace_id = '${workspaceId}'`, async (database) => {
    await assertFound(database, { seq: 0, id: null })
  })
  const empty = tenant.workspaces[1]?.id
  assert(empty)
  await tamper(head(`hash = repeat('ab', 32)`, empty), async (database) => {
    assert.equal((await verifyChain(database, annals.app.archive, empty)).ok, false)
  })
})

test('a chain with an erased part is valid, and one with half an erasure is not', async () => {
  const canonical = (part: string) =>
    `salts = replace(replace((salts::jsonb - '${part}')::text, ': ', ':'), ', ', ',')`
  const erasures = {
    actor: `actor = null, actor_id = null, actor_email = null, ${canonical('actor')}`,
    resource: `resource = null, resource_type = null, resource_id = null, ${canonical('resource')}`,
    metadata: `metadata = null, ${canonical('metadata')}`,
  }
  for (const erasure of Object.values(erasures)) {
    await tamper(edit(erasure), assertHolds)
  }
  const halves = [
    `actor = null, actor_id = null, actor_email = null`,
    canonical('actor'),
    `actor = null, ${canonical('actor')}`,
    `metadata = null, salts = (salts::jsonb - 'metadata')::text`,
  ]
  for (const half of halves) {
    await tamper(edit(half), async (database) => {
      await assertFound(database, { seq: BAD_SEQ, id: idOf(BAD_SEQ) })
    })
  }
})

test('annals verify exits with 0 if all chains are valid, otherwise with 1 and the first bad event', async () => {
  const env = {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  }
  const clean = await runCommandInHost(['verify'], env)
  assert.equal(clean.code, 0, clean.stderr)
  // If the signer has signed them already, another line follows.
  const [first] = clean.stdout.split('\n')
  assert.equal(first, `ok: ${EVENTS} events in 3 workspaces, every chain is intact`)
  await query(connection, edit(`category = 'C'`))
  const broken = await runCommandInHost(['verify'], env)
  await query(connection, edit(`category = 'c'`))
  assert.equal(broken.code, 1)
  assert(broken.stdout.includes(`workspace ${workspaceId} at seq 3 (event ${idOf(3)})`))
  assert.match(broken.stdout, /FAILED: 1 of 3 chains are broken\n$/)
})

test('detects a workspace that was moved to another company', async () => {
  const other = await annals.createCompany()
  const move = `update workspace set company_id = '${other.company.id}', name = 'Moved'
                 where id = '${workspaceId}'`
  await tamper(move, async (database) => {
    const problem = await assertFound(database, { seq: 1, id: idOf(1) })
    assert.match(problem, /belongs to company .*, but its workspace to company/)
  })
})
