import assert from 'node:assert/strict'
import { writeFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { recomputeHash } from '../../src/ledger/chain.ts'
import { listChainRun } from '../../src/ledger/event-store.ts'
import { verifyPeriod } from '../../src/outlet/verify/verify-period.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import type { VerifyRun } from '../../src/outlet/verify/verify-run.ts'
import type { Database } from '../../src/platform/pg/database.ts'
import { archiveAll, listFiles } from '../harness/archive/archive.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { tamperWith } from '../harness/database/tamper.ts'
import { createSigner, openNote, signWhole } from '../harness/proof/proof.ts'
import { verifyNow } from '../harness/proof/verify-runs.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const HOUR_MS = 3_600_000
const START_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 48 * HOUR_MS
const EVENTS = 10
let nowMs = START_MS
const env = { ANNALS_RATE_LIMITS: 'off' }
const annals = await startTestApp({ role: 'api', clock: () => nowMs, env })
after(() => annals[Symbol.asyncDispose]())
const { archive, database } = annals.app
const { db } = database
const signer = createSigner(annals)
/** One event per hour. Two files have three each, and four are in the table. */
async function createChain() {
  const { company, workspace, workspaceKey: key } = await annals.createCompany()
  for (let hour = 0; hour < EVENTS; hour += 1) {
    if (hour === 3) await keepRows(workspace.id)
    if (hour === 3 || hour === 6) await archiveAll(annals)
    nowMs = START_MS + hour * HOUR_MS + 60_000
    const body = { category: 'c', action: `a${hour}`, actor: { id: 'ada' } }
    const { status, text } = await annals.call('POST', '/v1/events', { key, body })
    assert.equal(status, 201, text)
  }
  await signWhole(signer, workspace.id)
  return { companyId: company.id, workspaceId: workspace.id }
}

/** Copies rows that the archiver deletes. */
async function keepRows(id: string): Promise<void> {
  const copied = `create table kept_row as select * from event where workspace_id = '${id}'`
  await asOwner(annals, (owner) => sql.raw(copied).execute(owner))
}

const chain = await createChain()
const { workspaceId } = chain

/** From one hour to another. The event of hour 0 has the sequence number 1. */
function hours(from: number, to: number) {
  const at = (hour: number) => new Date(START_MS + hour * HOUR_MS)
  return { from: at(from), to: at(to) }
}

async function verifyHours(from: number, to: number, client: Database = database) {
  return await verifyPeriod(client, archive, { workspaceId, period: hours(from, to) })
}

/** How many events the unchanged chain has in these hours. */
async function countOf(from: number, to: number): Promise<number> {
  const verdict = await verifyHours(from, to)
  assert(verdict.ok)
  return verdict.events
}

/** The first bad event, or null. */
async function badSeqOf(from: number, to: number, client: Database): Promise<number | null> {
  const verdict = await verifyHours(from, to, client)
  return verdict.ok ? null : verdict.seq
}

const tamper = (statement: string, check: (client: Database) => Promise<void>) =>
  tamperWith(annals.database.connection, statement, check)

const ofChain = `workspace_id = '${workspaceId}'`

test('counts exactly the events of the period, archived or not', async () => {
  const expected = new Map([
    [[0, 10], { events: 10, range: { firstSeq: 1, lastSeq: 10 } }],
    [[1, 2], { events: 1, range: { firstSeq: 2, lastSeq: 2 } }],
    [[2, 5], { events: 3, range: { firstSeq: 3, lastSeq: 5 } }],
    [[5, 8], { events: 3, range: { firstSeq: 6, lastSeq: 8 } }],
    [[7, 8], { events: 1, range: { firstSeq: 8, lastSeq: 8 } }],
    [[9, 30], { events: 1, range: { firstSeq: 10, lastSeq: 10 } }],
    [[-5, 0], { events: 0, range: null }],
    [[2.5, 2.9], { events: 0, range: null }],
    [[6.5, 6.9], { events: 0, range: null }],
    [[20, 30], { events: 0, range: null }],
  ])
  for (const [[from = 0, to = 0], { events, range }] of expected) {
    const verdict = await verifyHours(from, to)
    assert(verdict.ok, JSON.stringify(verdict))
    assert.deepEqual([verdict.events, verdict.range], [events, range], `hours ${from} to ${to}`)
  }
})

test('finds a changed event in the period or next to it, and ignores others', async () => {
  await tamper(`update event set action = 'x' where ${ofChain} and seq = 8`, async (client) => {
    assert.equal(await badSeqOf(7, 8, client), 8)
    assert.equal(await badSeqOf(0, 10, client), 8)
    // It could hide that events were removed from the end of this period.
    assert.equal(await badSeqOf(0, 7, client), 8)
    // Or that this period starts earlier.
    assert.equal(await badSeqOf(8, 10, client), 8)
    for (const [from, to] of [
      [0, 6],
      [9, 10],
    ] as const) {
      assert.equal(await badSeqOf(from, to, client), null, `hours ${from} to ${to}`)
    }
  })
  await tamper(`update event set actor_id = 'x' where ${ofChain} and seq = 9`, async (client) => {
    assert.equal(await badSeqOf(8, 9, client), 9)
  })
})

test('finds a changed time that would hide events at the start or at the end of the period', async () => {
  const early = '018f0000-0000-7000-8000-000000000000'
  const late = new Date(START_MS + 99 * HOUR_MS).toISOString()
  // The search for the start reads event 8 first, and the one for the end event 10, 5 and 8.
  await tamper(
    `update event set id = '${early}' where ${ofChain} and seq = 8; delete from event where ${ofChain} and seq = 7`,
    async (client) => assert.equal(await badSeqOf(6, 10, client), 8),
  )
  await tamper(
    `update event set received_at = '${late}' where ${ofChain} and seq >= 8; delete from event where ${ofChain} and seq = 10`,
    async (client) => assert.equal(await badSeqOf(6, 10, client), 8),
  )
})

test('finds changed times of the catalog, wherever the period starts and ends', async () => {
  const segment = (change: string) => `update segment set ${change} where ${ofChain}`
  const at = (hour: number) => `'${new Date(START_MS + hour * HOUR_MS).toISOString()}'`
  const [early, late] = [
    `min_received_at = ${at(-9)}, max_received_at = ${at(-9)}`,
    `min_received_at = ${at(99)}, max_received_at = ${at(99)}`,
  ]
  for (const change of [
    segment(early),
    segment(late),
    `${segment(early)} and last_seq = 6`,
    `${segment(late)} and last_seq = 6`,
    `${segment(early)} and last_seq = 3`,
    `${segment(late)} and last_seq = 3`,
  ]) {
    await tamper(change, async (client) => {
      for (const [from, to] of [
        [0, 6],
        [1, 5],
        [0, 10],
        [-5, 20],
      ] as const) {
        const verdict = await verifyHours(from, to, client)
        if (verdict.ok) assert.equal(verdict.events, await countOf(from, to), change)
      }
    })
  }
})

test('finds deleted events, wherever the period starts and ends', async () => {
  for (const [first, last] of [
    [7, 7],
    [8, 9],
    [9, 10],
    [10, 10],
    [7, 10],
  ] as const) {
    const deletion = `delete from event where ${ofChain} and seq between ${first} and ${last}`
    await tamper(deletion, async (client) => {
      for (const [from, to] of [
        [0, 10],
        [first - 1, last],
        [first - 1, first],
        [last - 1, last],
        [first - 1.5, last + 0.5],
      ] as const) {
        const seq = await badSeqOf(from, to, client)
        // The event after a gap is the first bad one.
        const isFound = seq !== null && seq >= first && seq <= last + 1
        assert(isFound, `${seq} in hours ${from} to ${to} without ${first} to ${last}`)
      }
    })
  }
})

test('finds an event that was inserted next to another one', async () => {
  const planted = `insert into event select (jsonb_populate_record(e, jsonb_build_object('id',
    '01900000-0000-7000-8000-000000000000'))).* from event e where ${ofChain} and seq = 8`
  await tamper(planted, async (client) => assert.equal(await badSeqOf(7, 8, client), 8))
})

/** Inserts the row of an archived event again, with these changes. */
function insertKept(seq: number, changes: object): string {
  return `insert into event select (jsonb_populate_record(k, '${JSON.stringify(changes)}')).*
            from kept_row k where seq = ${seq}`
}

test('finds an archived event that is in the table again, with other values', async () => {
  for (const changes of [
    { action: 'forged' },
    { actor_id: 'forged' },
    { metadata: '{"a":1}' },
    { hash: `\\x${'00'.repeat(32)}` },
    { id: '01900000-0000-7000-8000-000000000000' },
  ]) {
    await tamper(insertKept(2, changes), async (client) => {
      const verdicts = [
        await verifyHours(1, 2, client),
        await verifyChain(client, archive, workspaceId),
      ]
      for (const verdict of verdicts) {
        assert(!verdict.ok, JSON.stringify(changes))
        assert.match(verdict.problem, /^event 2 in the table/)
      }
    })
  }
  await tamper(insertKept(2, {}), async (client) => {
    assert.equal(await badSeqOf(1, 2, client), null)
    assert((await verifyChain(client, archive, workspaceId)).ok)
  })
})

test('finds an event that was planted before the first one or after the last one', async () => {
  for (const seq of [0, -3, Number.MIN_SAFE_INTEGER, EVENTS + 1, 5_000]) {
    await tamper(insertKept(1, { seq, action: 'planted' }), async (client) => {
      assert.equal(await badSeqOf(1, 2, client), seq)
      const verdict = await verifyChain(client, archive, workspaceId)
      assert.equal(verdict.ok ? null : verdict.seq, seq)
    })
  }
})

test('finds a rewritten event, because the next one continues from the old hash', async () => {
  await rewrite(8, 8, async (client) => {
    assert.equal(await badSeqOf(7, 8, client), 8)
    assert.equal(await badSeqOf(8, 9, client), 9)
    assert.equal(await badSeqOf(0, 5, client), null)
  })
})

/** Removes events of the middle as a database owner would, with new numbers and hashes for all later ones. */
async function removeAndRechain(first: number, last: number): Promise<string[]> {
  const { entries } = await listChainRun(db, { workspaceId, afterSeq: first - 2, limit: 100 })
  const [before, ...rest] = entries.map(({ event }) => event)
  assert(before)
  const statements = [`delete from event where ${ofChain} and seq between ${first} and ${last}`]
  let head: { seq: number; hash: string } = before
  for (const event of rest.filter(({ seq }) => seq > last)) {
    const moved = { ...event, seq: head.seq + 1, prevHash: head.hash }
    const recomputed = recomputeHash(moved)
    assert(recomputed.ok)
    const { hash } = recomputed
    statements.push(
      `update event set seq = ${moved.seq}, prev_hash = '\\x${moved.prevHash}', hash = '\\x${hash}'
        where ${ofChain} and seq = ${event.seq}`,
    )
    head = { seq: moved.seq, hash }
  }
  const { seq, hash } = head
  return [...statements, `update chain_head set seq = ${seq}, hash = '${hash}' where ${ofChain}`]
}

test('finds a changed file of the archive only if it has events of the period', async () => {
  const [first = assert.fail()] = listFiles(annals, workspaceId)
  const path = join(new URL(annals.archiveUrl).pathname, first)
  const bytes = readFileSync(path)
  const changed = Buffer.from(bytes)
  changed[100] = (changed[100] ?? 0) ^ 1
  writeFileSync(path, changed)
  try {
    assert.equal(await badSeqOf(0, 2, database), 1)
    assert.equal(await badSeqOf(4, 10, database), null)
    // The event before the period is in that file.
    assert.equal(await badSeqOf(3, 10, database), 3)
    // The event after the period is in that file.
    assert.equal(await badSeqOf(-5, 0, database), 1)
  } finally {
    writeFileSync(path, bytes)
  }
})

/** Changes events as a database owner would: with their hashes, and the head if the last one changes. */
async function rewrite(first: number, last: number, check: (client: Database) => Promise<void>) {
  const { entries } = await listChainRun(db, { workspaceId, afterSeq: first - 1, limit: 100 })
  const statements: string[] = []
  let prevHash: string | null = null
  for (const { event } of entries.filter(({ event: { seq } }) => seq <= last)) {
    const forged = { ...event, action: 'forged', prevHash: prevHash ?? event.prevHash }
    const recomputed = recomputeHash(forged)
    assert(recomputed.ok)
    prevHash = recomputed.hash
    statements.push(
      `update event set action = 'forged', prev_hash = '\\x${forged.prevHash}', hash = '\\x${prevHash}'
        where ${ofChain} and seq = ${event.seq}`,
    )
  }
  if (last === EVENTS) {
    statements.push(`update chain_head set hash = '${prevHash}' where ${ofChain}`)
  }
  await tamper(statements.join(';'), check)
}

const runOf = (period: VerifyRun['period']) => verifyNow(annals, chain, period)

test('a run stores the signed checkpoint that contains its events', async () => {
  for (const period of [hours(1, 5), hours(5, 8), null]) {
    const { status, covered, total } = await runOf(period)
    assert.equal(status, 'HOLDS')
    assert(covered?.range && covered.checkpoint)
    const { note, vkey, size, root } = covered.checkpoint
    const signed = openNote(note, vkey)
    assert.deepEqual([signed.size, signed.root], [size, root.toString('base64')])
    assert.deepEqual([size, total > 0], [EVENTS, period !== null])
  }
  const empty = await runOf(hours(20, 30))
  assert.deepEqual([empty.status, empty.covered], ['HOLDS', { range: null, checkpoint: null }])
})

/** Commits a change, runs the check, and restores the tables. */
async function withChange(statements: string[], restore: string[], check: () => Promise<void>) {
  const run = (texts: string[]) =>
    asOwner(annals, async (owner) => {
      for (const text of texts) await sql.raw(text).execute(owner)
    })
  await run(statements)
  try {
    await check()
  } finally {
    await run(restore)
  }
}

test('a run finds a history that was rewritten after it was signed', async () => {
  const { entries } = await listChainRun(db, { workspaceId, afterSeq: 9, limit: 1 })
  const [last = assert.fail()] = entries.map(({ event }) => event)
  const recomputed = recomputeHash({ ...last, action: 'forged' })
  assert(recomputed.ok)
  const setTo = ({ action, hash }: { action: string; hash: string }) => [
    `update event set action = '${action}', hash = '\\x${hash}' where ${ofChain} and seq = 10`,
    `update chain_head set hash = '${hash}' where ${ofChain}`,
  ]
  await withChange(setTo({ action: 'forged', hash: recomputed.hash }), setTo(last), async () => {
    for (const period of [null, hours(8, 10)]) {
      const { status, badSeq, verdict, covered } = await runOf(period)
      assert.deepEqual([status, badSeq, covered], ['BROKEN', 10, null])
      assert.match(verdict ?? '', /signed checkpoint of 10 events/)
    }
    assert.equal((await runOf(hours(0, 5))).status, 'HOLDS')
  })
})

test('a run finds that the end of a signed chain was cut off', async () => {
  const cut = [
    `create table kept_event as select * from event where ${ofChain} and seq > 8`,
    `create table kept_head as select * from chain_head where ${ofChain}`,
    `delete from event where ${ofChain} and seq > 8`,
    `update chain_head h set seq = 8, hash = encode(e.hash, 'hex'), last_id = e.id
       from event e where h.${ofChain} and e.${ofChain} and e.seq = 8`,
  ]
  const restore = [
    'insert into event select * from kept_event',
    `update chain_head h set seq = k.seq, hash = k.hash, last_id = k.last_id
       from kept_head k where h.${ofChain}`,
    'drop table kept_event',
    'drop table kept_head',
  ]
  // Someone who can cut it off can also hide what was published.
  const [hide, show] = [0, EVENTS].map(
    (size) => `update checkpoint set tree_size = ${size} where ${ofChain}`,
  )
  await withChange(cut, restore, async () => {
    for (const statements of [[], [hide ?? '']]) {
      await withChange(statements, [show ?? ''], async () => {
        for (const period of [null, hours(0, 5), hours(8, 10)]) {
          const { status, verdict } = await runOf(period)
          assert.equal(status, 'BROKEN')
          assert.match(verdict ?? '', /differs from what was signed: .*10 events.* 8/)
        }
      })
    }
  })
})

test('a run of a period finds a rewritten history although what was published is gone', async () => {
  const keep = [
    `create table kept_event as select * from event where ${ofChain}`,
    `create table kept_head as select * from chain_head where ${ofChain}`,
    `create table kept_checkpoint as select * from checkpoint where ${ofChain}`,
  ]
  const restore = [
    `delete from event where ${ofChain}`,
    'insert into event select * from kept_event',
    `update chain_head h set seq = k.seq, hash = k.hash, last_id = k.last_id
       from kept_head k where h.${ofChain}`,
    `delete from checkpoint where ${ofChain}`,
    'insert into checkpoint select * from kept_checkpoint',
    'drop table kept_event, kept_head, kept_checkpoint',
  ]
  // The chain is as long as what was signed, so only its content can show the change.
  const rewritten = [
    ...(await removeAndRechain(8, 8)),
    `insert into event select (jsonb_populate_record(k, '{"hash":"\\\\x${'00'.repeat(32)}"}')).*
       from kept_event k where k.seq = 10`,
    `update chain_head set seq = 10 where ${ofChain}`,
  ]
  for (const hide of [
    `delete from checkpoint where ${ofChain}`,
    `update checkpoint set tree_size = 0 where ${ofChain}`,
    `update checkpoint set size = 1 where ${ofChain}`,
  ]) {
    await withChange([...keep, ...rewritten, hide], restore, async () => {
      for (const period of [hours(5, 8), hours(6.9, 7.9), hours(8, 9)]) {
        const { status, verdict } = await runOf(period)
        assert.equal(status, 'BROKEN', `${hide}: ${verdict}`)
      }
    })
  }
})

test('a run of a period fails while the tiles that would prove its events are missing', async () => {
  const [hide, show] = [0, EVENTS].map(
    (size) => `update checkpoint set tree_size = ${size} where ${ofChain}`,
  )
  await withChange([hide ?? ''], [show ?? ''], async () => {
    const { status, verdict } = await runOf(hours(5, 8))
    assert.equal(status, 'FAILED')
    assert.match(verdict ?? '', /the signed tree is being rebuilt/)
    assert.equal((await runOf(null)).status, 'HOLDS')
  })
})

test('a run refuses a checkpoint that this service has not signed', async () => {
  const backup = `create table kept_checkpoint as select * from checkpoint where ${ofChain}`
  const forge = `update checkpoint set note = replace(note, '— ', '— x') where ${ofChain}`
  const restore = [
    `update checkpoint c set note = k.note from kept_checkpoint k where c.${ofChain}`,
    'drop table kept_checkpoint',
  ]
  await withChange([backup, forge], restore, async () => {
    const { status, verdict } = await runOf(null)
    assert.equal(status, 'BROKEN')
    assert.match(
      verdict ?? '',
      /the newest checkpoint, of 10 events, is not signed with a key of this service/,
    )
  })
})

test('events that are newer than the checkpoint hold, and the rest is compared with it', async () => {
  const { companyId } = chain
  nowMs = START_MS + 11 * HOUR_MS
  const other = await annals.createCompany()
  assert.notEqual(other.company.id, companyId)
  const send = () =>
    annals.call('POST', '/v1/events', {
      key: other.workspaceKey,
      body: { category: 'c', action: 'a' },
    })
  await send()
  await signWhole(signer, other.workspace.id)
  await send()
  const ids = { companyId: other.company.id, workspaceId: other.workspace.id }
  const { range, checkpoint } = (await verifyNow(annals, ids, null)).covered ?? {}
  assert.deepEqual([range, checkpoint?.size], [{ firstSeq: 1, lastSeq: 2 }, 1])
})

// Archives all chains, so it is the last one.
test('finds a changed time of the catalog although the clock was set back', async () => {
  const { workspace, workspaceKey: key } = await annals.createCompany()
  for (const hour of [0, 5, null, 2, 6.5, null]) {
    nowMs = START_MS + (hour ?? 24) * HOUR_MS
    if (hour === null) await archiveAll(annals)
    else await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  }
  const period = { workspaceId: workspace.id, period: hours(4, 6) }
  const early = new Date(START_MS + HOUR_MS).toISOString()
  const change = `update segment set max_received_at = '${early}'
                   where workspace_id = '${workspace.id}' and last_seq = 2`
  await tamper(change, async (client) => {
    const verdict = await verifyPeriod(client, archive, period)
    assert(!verdict.ok || verdict.events === 1, JSON.stringify(verdict))
  })
})
