import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/dashboard/explorer.ts'
import {
  type FollowerOptions,
  FollowerThread,
  type Progress,
} from '../harness/http/follower-thread.ts'
import { HttpThread } from '../harness/http/http-thread.ts'
import { LoopProbe } from '../harness/timing/loop-probe.ts'
import { startTestApp } from '../harness/app/start-app.ts'

/** What a company can have on a node. */
const FOLLOWERS = 50
const FOLLOWERS_PER_MEMBER = 5
const EVENTS = process.env.FAULT_SECONDS === undefined ? 1_000 : 2_000
const EVENTS_PER_BATCH = 250
/** CPU per event and follower. An id and a record of its own for each took about 55 µs. */
const TOLD_US_MAX = 5
const STALLED_US_MAX = 2
const SLICE_MS_MAX = 20
const TRIES = 4

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
const followers = new FollowerThread()
const sender = new HttpThread()
after(async () => {
  await followers[Symbol.asyncDispose]()
  await sender[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})
const found = await annals.createCompany({ workspaces: ['First', 'Second'] })
const [first, second] = found.workspaces
assert(first && second)
const url = `${annals.url}/dashboard/events/live`
const cookies: string[] = []
for (let count = 0; count < FOLLOWERS / FOLLOWERS_PER_MEMBER; count += 1) {
  cookies.push((await signInAs(annals, found, 'OWNER')).cookie)
}
const readers = cookies.flatMap((cookie) =>
  Array.from({ length: FOLLOWERS_PER_MEMBER }, () => ({ url: `${url}?category=s`, cookie })),
)

/** Replaces the streams that are open. Closed ones still count for a moment. */
async function openAll(options: readonly FollowerOptions[]): Promise<void> {
  await eventually(async () => {
    await followers.closeAll()
    await followers.open(options)
  })
}

const untilAll = (check: (follower: Progress) => boolean) =>
  eventually(
    async () => {
      for (const follower of await followers.progress()) {
        assert(check(follower), JSON.stringify(follower))
      }
    },
    { timeoutMs: 30_000 },
  )

const small = { category: 's', action: 's', metadata: { a: 1 } }
/** The last sequence number of the first workspace. */
let lastSeq = 0

async function sendBurst(): Promise<void> {
  assert(first)
  const events = Array.from({ length: EVENTS_PER_BATCH }, () => small)
  for (let count = 0; count < EVENTS; count += EVENTS_PER_BATCH) {
    await sendEvents(annals, first.workspaceKey, events)
    lastSeq += EVENTS_PER_BATCH
  }
}

const eventBody = (metadata: object) =>
  Buffer.from(JSON.stringify({ category: 's', action: 's', metadata }))
const large = eventBody({ text: '…'.repeat(60_000) })

async function sendLarge(count: number, body = large): Promise<void> {
  const authorization = `Bearer ${first?.workspaceKey}`
  const headers = { 'content-type': 'application/json', authorization }
  for (let sent = 0; sent < count; sent += 1) {
    const request = { url: `${annals.url}/v1/events`, method: 'POST', headers, body }
    const { status, text } = await sender.call(request)
    assert.equal(status, 201, text)
    lastSeq += 1
  }
}

/** Resolves when every follower has the last event, or a notice of a gap. */
const untilCaughtUp = () => untilAll(({ lastSeq: seq, isLastGap }) => seq === lastSeq || isLastGap)

async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}

/** Repeats a measurement until it is within the limit, because other work only adds to it. */
async function assertBest(max: number, measure: () => Promise<number>): Promise<void> {
  const values: number[] = []
  while (values.length < TRIES && !values.some((value) => value <= max)) {
    values.push(await measure())
  }
  assert(Math.min(...values) <= max, `${values.map((value) => value.toFixed(1)).join()} > ${max}`)
}

test('sends a burst of events to 50 followers, in order and once, with little CPU time', async () => {
  await sendBurst()
  const aloneMs = await cpuMs(sendBurst)
  await assertBest(TOLD_US_MAX, async () => {
    await openAll(readers)
    const firstSeq = lastSeq + 1
    const togetherMs = await cpuMs(async () => {
      await sendBurst()
      await untilCaughtUp()
    })
    const all = Array.from({ length: EVENTS }, (_, index) => firstSeq + index)
    for (const followed of await followers.report()) {
      const seqs = followed.flatMap(({ seq }) => seq ?? [])
      if (followed.some(({ event }) => event === 'gap')) {
        assert(seqs.every((seq, index) => index === 0 || seq > (seqs[index - 1] ?? 0)))
      } else {
        assert.deepEqual(seqs, all)
      }
    }
    return ((togetherMs - aloneMs) * 1_000) / (EVENTS * FOLLOWERS)
  })
})

test('serves 50 followers of small or large events in short slices', async () => {
  for (const send of [sendBurst, () => sendLarge(10)]) {
    await assertBest(SLICE_MS_MAX, async () => {
      await openAll(readers)
      return await new LoopProbe().longestTurnMs(async () => {
        await send()
        await untilCaughtUp()
      })
    })
  }
})

/** Each is as large as an event can be, and slow to compare in its own way. None has a wanted value. */
const HOSTILE: readonly object[] = [
  { m: Array.from({ length: 120_000 }, () => 0), n: 'w0' },
  Object.fromEntries(Array.from({ length: 18_000 }, (_, nth) => [`m.${nth}`, 'w'])),
  Object.fromEntries(Array.from({ length: 10_000 }, (_, nth) => [`"\\\n${nth}`, '"'])),
  { m: Array.from({ length: 4_000 }, () => JSON.parse(`${'['.repeat(28)}${']'.repeat(28)}`)) },
  { m: 'aA'.repeat(120_000), n: 'w0' },
]

test('compares large metadata with the filters of 50 followers in short slices', async () => {
  const path = Array.from({ length: 20 }, (_, nth) => `metadata.m=w${nth}`).join('&')
  const halves = 'a'.repeat(480)
  const queries = [
    path,
    `${path}&metadata.m.1=w`,
    `metadata.m=${halves}b${halves}`,
    'text=a',
    'text=0"',
  ]
  const filtered = cookies.flatMap((cookie) =>
    queries.map((query) => ({ url: `${url}?${query}`, cookie })),
  )
  const wanted = { m: ['w1', `${halves}b${halves}`, 'a', '0"'], 'm.1': 'w' }
  for (const metadata of HOSTILE) {
    await assertBest(SLICE_MS_MAX, async () => {
      await openAll(filtered)
      return await new LoopProbe().longestTurnMs(async () => {
        for (let sent = 0; sent < 3; sent += 1) await sendLarge(1, eventBody(metadata))
        await sendLarge(1, eventBody(wanted))
        await untilCaughtUp()
      })
    })
  }
})

test('a follower that reads nothing costs almost nothing', async () => {
  const [cookie = ''] = cookies
  await openAll([{ url, cookie }])
  const burst = async () => {
    await sendBurst()
    await eventually(async () => {
      const [reader] = await followers.progress()
      assert.equal(reader?.lastSeq, lastSeq)
    })
  }
  const aloneMs = await cpuMs(burst)
  await followers.open(cookies.map((owner) => ({ url, cookie: owner, readsNothing: true })))
  // More than the kernel and the service keep for a client.
  await sendLarge(80)
  await assertBest(STALLED_US_MAX, async () => {
    const togetherMs = await cpuMs(burst)
    return ((togetherMs - aloneMs) * 1_000) / (EVENTS * cookies.length)
  })
})

test('a stream resumes after any event of a burst', async () => {
  const [cookie = ''] = cookies
  await openAll([{ url, cookie }])
  await sendBurst()
  await untilCaughtUp()
  const [frames = []] = await followers.report()
  const events = frames.filter(({ seq }) => seq !== null)
  assert.equal(events.length, EVENTS)
  for (const missed of [EVENTS / 2, 333, 1]) {
    const from = events.at(-missed - 1)
    assert(from?.seq)
    await openAll([{ url, cookie, lastId: from.id }])
    await untilCaughtUp()
    const [resumed = []] = await followers.report()
    assert.equal(resumed[0]?.event, 'open')
    const seqs = resumed.flatMap(({ seq }) => seq ?? [])
    assert.deepEqual(
      seqs,
      events.slice(-missed).map(({ seq }) => seq),
    )
  }
})

test('a follower gets only the events of its own workspaces', async () => {
  const other = await annals.createCompany()
  const { cookie: otherCookie } = await signInAs(annals, other, 'OWNER')
  const { cookie: firstOnly } = await signInAs(annals, found, 'VIEWER', [first.id])
  const { cookie: secondOnly } = await signInAs(annals, found, 'VIEWER', [second.id])
  const [both = ''] = cookies
  const mixed = Array.from({ length: 4 }, () => [firstOnly, both, secondOnly, otherCookie]).flat()
  await openAll(mixed.map((cookie) => ({ url, cookie })))
  const workspaces = [first, second, { ...other.workspace, workspaceKey: other.workspaceKey }]
  const events = Array.from({ length: 120 }, () => small)
  await Promise.all(workspaces.map(({ workspaceKey }) => sendEvents(annals, workspaceKey, events)))
  const counts = (cookie: string | undefined) => (cookie === both ? 240 : 120)
  await eventually(async () => {
    const progress = await followers.progress()
    assert(progress.every((one, index) => one.events === counts(mixed[index])))
  })
  const seen: Record<string, readonly string[]> = {
    [firstOnly]: [first.id],
    [secondOnly]: [second.id],
    [both]: [first.id, second.id].toSorted(),
    [otherCookie]: [other.workspace.id],
  }
  const report = await followers.report()
  for (const [index, cookie] of mixed.entries()) {
    const ids = new Set((report[index] ?? []).flatMap(({ workspaceId }) => workspaceId ?? []))
    assert.deepEqual([...ids].toSorted(), seen[cookie])
  }
})
