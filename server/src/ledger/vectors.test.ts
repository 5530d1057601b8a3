import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'

import canonicalize from 'canonicalize'

import { assertId } from '../platform/id.ts'
import { parseStrictJson } from '../platform/json/strict-json.ts'
import { canonicalJson } from './canonical.ts'
import { coreText, sealEvent, verifyLink } from './chain.ts'
import type { Salts } from './commitment.ts'
import { EMPTY_HEAD, headAfter, PART_NAMES, type ChainHead, type SealedEvent } from './event.ts'

type Row = {
  id: string
  seq: number
  timestamp: string
  receivedAt: string
  companyId: string
  workspaceId: string
  projectId: string | null
  category: string
  action: string
  actor: unknown
  resource: unknown
  metadata: unknown
  traceId: string | null
  hash: string
  prevHash: string
  sealed: Record<string, string>
  salts: Record<string, string>
}
type Vectors = {
  chains: {
    title: string
    events: {
      title: string
      sent?: Record<string, string>
      event: Row
      canonical: Record<string, string>
      core: string
    }[]
  }[]
  tampered: {
    title: string
    prev: { seq: number; hash: string; lastId: string | null }
    event: Row
  }[]
  refused: { title: string; text: string; kind: string; path: string }[]
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../../../vectors/chain.json', import.meta.url), 'utf8'),
)

/** This suite uses a general canonicalizer and node:crypto, and none of our code. */
suite('the test vectors follow from the format alone', () => {
  for (const { title: chain, events } of vectors.chains) {
    let prevHash = '0'.repeat(64)
    for (const { title, sent = {}, event, canonical, core } of events) {
      const before = prevHash
      prevHash = event.hash
      test(`${chain}: ${title}`, () => {
        for (const [name, text] of Object.entries(sent)) {
          assert.equal(canonicalize(JSON.parse(text)), canonical[name])
        }
        for (const name of PART_NAMES) {
          const text = canonical[name]
          assert.equal(text, event[name] === null ? undefined : canonicalize(event[name]))
          const salt = event.salts[name]
          if (text === undefined || salt === undefined) continue
          const mac = createHmac('sha256', Buffer.from(salt, 'hex'))
          assert.equal(mac.update(`annals/v1/${name}\0${text}`).digest('hex'), event.sealed[name])
        }
        const { hash, salts: _, actor: _a, resource: _r, metadata: _m, ...hashed } = event
        assert.equal(canonicalize({ v: 1, ...hashed }), core)
        assert.equal(createHash('sha256').update('\0').update(core).digest('hex'), hash)
        assert.equal(event.prevHash, before)
      })
    }
  }
})

suite('the code agrees with the test vectors', () => {
  for (const { title: chain, events } of vectors.chains) {
    test(`${chain}: every event verifies and seals to the same hash`, () => {
      let head: ChainHead = EMPTY_HEAD
      for (const { sent = {}, event: row, core, canonical } of events) {
        const event = storedEvent(row)
        assert.equal(coreText(event), core)
        assert.deepEqual(verifyLink(head, event), { ok: true })
        for (const [name, text] of Object.entries(sent)) {
          assert.equal(canonicalJson(parseStrictJson(Buffer.from(text)).value), canonical[name])
        }
        const isErased = Object.keys(row.sealed).length > Object.keys(row.salts).length
        if (!isErased) {
          assert.deepEqual(sealEvent(head, event, { id: event.id, salts: saltBytes(row) }), event)
        }
        head = headAfter(event)
      }
    })
  }

  for (const { title, prev, event } of vectors.tampered) {
    test(`does not verify: ${title}`, () => {
      const lastId = prev.lastId === null ? null : assertId<'event'>(prev.lastId)
      assert.equal(verifyLink({ ...prev, lastId }, storedEvent(event)).ok, false)
    })
  }

  for (const { title, text, kind, path } of vectors.refused) {
    test(`rejects: ${title}`, () => {
      const { fault } = parseStrictJson(Buffer.from(text))
      assert.deepEqual([fault?.kind, fault?.path], [kind, path])
    })
  }
})

test('the example in docs/chain-format.md is the first test vector', () => {
  const document = readFileSync(new URL('../../../docs/chain-format.md', import.meta.url), 'utf8')
  const [example] = vectors.chains[0]?.events ?? []
  assert(example !== undefined)
  const { event, canonical, core } = example
  for (const name of PART_NAMES) {
    for (const text of [event.salts[name], canonical[name], event.sealed[name]]) {
      assert(text !== undefined && document.includes(text))
    }
  }
  assert(document.includes(core))
  assert(document.includes(event.hash))
})

function storedEvent(row: Row): SealedEvent {
  const partText = (value: unknown): string | null => (value === null ? null : canonicalJson(value))
  return {
    id: assertId(row.id),
    seq: row.seq,
    companyId: assertId(row.companyId),
    workspaceId: assertId(row.workspaceId),
    projectId: row.projectId === null ? null : assertId(row.projectId),
    timestampMs: Date.parse(row.timestamp),
    receivedAtMs: Date.parse(row.receivedAt),
    category: row.category,
    action: row.action,
    traceId: row.traceId,
    actor: partText(row.actor),
    metadata: partText(row.metadata),
    resource: partText(row.resource),
    prevHash: row.prevHash,
    hash: row.hash,
    sealed: canonicalJson(row.sealed),
    salts: canonicalJson(row.salts),
  }
}

function saltBytes({ salts }: Row): Salts {
  const bytes = (name: string): Buffer => Buffer.from(salts[name] ?? '', 'hex')
  return { actor: bytes('actor'), metadata: bytes('metadata'), resource: bytes('resource') }
}
