import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../platform/id.ts'
import type { SeenViewer, SessionToken } from '../../tenancy/sign-in/session-store.ts'
import { SessionReader } from './session-reader.ts'

type Read = PromiseWithResolvers<ReadonlyMap<SessionToken, SeenViewer>> & {
  tokens: readonly SessionToken[]
}

const OWNER: SeenViewer = {
  sessionId: newId<'session'>(),
  userId: newId<'user'>(),
  email: 'owner@example.com',
  role: 'OWNER',
  companyId: newId<'company'>(),
  companyName: 'Acme',
  plan: 'FREE',
  needsSecondFactor: false,
  allowedRanges: null,
  workspaceIds: null,
  seenAt: new Date(0),
}
const DEMOTED: SeenViewer = { ...OWNER, role: 'VIEWER' }

/** The test decides when its reads finish. */
function startReader({ hasRecentUse = true } = {}) {
  const reads: Read[] = []
  const notes: PromiseWithResolvers<void>[] = []
  const reader = new SessionReader({
    list: (tokens) => {
      const read = { ...Promise.withResolvers<Awaited<Read['promise']>>(), tokens }
      reads.push(read)
      return read.promise
    },
    hasRecentUse: () => hasRecentUse,
    noteUse: () => {
      const note = Promise.withResolvers<void>()
      notes.push(note)
      return note.promise
    },
  })
  return { reader, reads, notes }
}

const settle = () => new Promise(setImmediate)

test('serves a flood of requests with two reads, plus one for all that wait', async () => {
  const { reader, reads } = startReader()
  const flood = Array.from({ length: 1_000 }, () => reader.find('flood'))
  const other = reader.find('other')
  assert.equal(reads.length, 2)
  reads[0]?.resolve(new Map([['flood', OWNER]]))
  await settle()
  assert.deepEqual(reads[2]?.tokens, ['flood', 'other'])
  reads[1]?.resolve(new Map([['flood', OWNER]]))
  reads[2]?.resolve(new Map([['flood', OWNER]]))
  assert((await Promise.all(flood)).every((viewer) => viewer?.role === 'OWNER'))
  assert.equal(await other, null)
  assert.equal(reads.length, 3)
})

test('a request never shares a read that started before it', async () => {
  const { reader, reads } = startReader()
  const before = [reader.find('session'), reader.find('session')]
  const after = reader.find('session')
  for (const read of reads.slice(0, 2)) read.resolve(new Map([['session', OWNER]]))
  await settle()
  reads[2]?.resolve(new Map([['session', DEMOTED]]))
  assert.deepEqual(
    (await Promise.all([...before, after])).map((viewer) => viewer?.role),
    ['OWNER', 'OWNER', 'VIEWER'],
  )
})

test('a failed read fails its own requests and no others', async () => {
  const { reader, reads } = startReader()
  const first = [reader.find('a'), reader.find('b')]
  const later = reader.find('c')
  for (const read of reads.slice(0, 2)) read.reject(new Error('connection lost'))
  for (const viewer of first) await assert.rejects(viewer, /connection lost/)
  reads[2]?.resolve(new Map([['c', OWNER]]))
  assert.equal((await later)?.email, OWNER.email)
})

test('writes one use per company at a time, without delaying its reads', async () => {
  const { reader, reads, notes } = startReader({ hasRecentUse: false })
  const tokens = Array.from({ length: 20 }, (_, nth) => `session ${nth}`)
  const found = tokens.map((token) => reader.find(token))
  for (let nth = 0; nth < 3; nth += 1) {
    const read = reads[nth]
    read?.resolve(new Map(read.tokens.map((token) => [token, OWNER])))
    await settle()
  }
  assert.deepEqual([reads.length, notes.length], [3, 1])
  for (let nth = 0; nth < tokens.length; nth += 1) {
    notes[nth]?.resolve()
    await settle()
  }
  assert.equal((await Promise.all(found)).length, tokens.length)
})
