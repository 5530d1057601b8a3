import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { hasMetadataValue, hasTerms } from '../../../test/harness/event/metadata-match.ts'
import { runAtOnce } from '../../platform/scheduling/time-slice.ts'
import { canonicalJson } from '../canonical.ts'
import { NO_FILTER } from '../filter/event-filter.ts'
import type { MetadataTerm } from './metadata-term.ts'
import { buildPostings, postingListOf, markPosted, POSTINGS_HEADER_BYTES } from './postings.ts'
import { addTokens, requiredChecks, requiredTokens, type TokenizedEvent } from './search-tokens.ts'
import { BUCKET_BYTES, bucketMayHave, buildTokenFilter } from './token-filter.ts'
import { type SearchToken, TokenTable } from './token-table.ts'

const SEED = 0x1d3c01fe

function tableOf(events: readonly Partial<TokenizedEvent>[], sliceEvents = 64): TokenTable {
  const table = new TokenTable({ sliceEvents })
  table.startBlock(SEED)
  const whole = events.map((event) => ({ traceId: null, actor: null, metadata: null, ...event }))
  runAtOnce(addTokens(whole, table))
  return table
}

function tokensOf(event: Partial<TokenizedEvent>): Set<SearchToken> {
  return new Set(tableOf([event]).found.tokens)
}

function mayHave(filter: Buffer, token: SearchToken, slice = 0): boolean {
  const start = ((token >>> 0) % (filter.length / BUCKET_BYTES)) * BUCKET_BYTES
  return bucketMayHave(filter.subarray(start, start + BUCKET_BYTES), token, slice)
}

const anyMetadata = fc
  .dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue({ stringUnit: 'grapheme' }))
  .map((value) => canonicalJson(JSON.parse(JSON.stringify(value).replaceAll('\\u0000', ''))))

/** Visits every node below the metadata. The value is null for an object or an array. */
function visitNodes(node: unknown, visit: (path: string, value: string | null) => void): void {
  const visitBelow = (path: string | null, child: unknown): void => {
    if (typeof child !== 'object' || child === null) {
      if (path !== null) visit(path, String(child))
      return
    }
    if (path !== null) visit(path, null)
    for (const [key, value] of Object.entries(child)) {
      const below = path === null ? key : `${path}.${key}`
      visitBelow(Array.isArray(child) ? path : below, value)
    }
  }
  visitBelow(null, node)
}

test('every value and path of any metadata has the tokens that a filter for it requires', () => {
  fc.assert(
    fc.property(anyMetadata, fc.integer({ min: 0, max: 500 }), (metadata, bytesMax) => {
      const tokens = tokensOf({ metadata })
      const filter = buildTokenFilter(tableOf([{ metadata }]), { bytesMax })
      const terms: MetadataTerm[] = []
      visitNodes(JSON.parse(metadata), (path, value) => {
        terms.push({ path, values: null })
        if (value === null) return
        terms.push({ path, values: [value] })
        assert(hasMetadataValue(metadata, value))
        const text = { ...NO_FILTER, text: value, textIn: 'metadata' as const }
        for (const token of requiredTokens(text).flat()) assert(tokens.has(token))
      })
      assert(hasTerms(metadata, terms))
      for (const [token] of requiredTokens({ ...NO_FILTER, metadata: terms })) {
        assert(token !== undefined && tokens.has(token) && mayHave(filter, token))
      }
    }),
  )
})

test('trace ids and roles have tokens', () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const tokens = tokensOf({ traceId, actor: canonicalJson({ id: 'a', role: 'admin' }) })
  const required = requiredTokens({ ...NO_FILTER, traceId, actorRole: 'admin' })
  assert.equal(required.length, 2)
  assert(required.flat().every((token) => tokens.has(token)))
  const others = requiredTokens({ ...NO_FILTER, metadata: [{ path: 'role', values: ['admin'] }] })
  assert(!others.flat().some((token) => tokens.has(token)))
})

const fewTexts = fc.constantFrom('a', 'B', 'b', '1', 'a.b', '"', 'É')
const likeMetadata = fc
  .dictionary(
    fewTexts,
    fc.oneof(
      fewTexts,
      fc.integer({ min: 0, max: 1 }),
      fc.array(fewTexts, { maxLength: 2 }),
      fc.dictionary(fewTexts, fewTexts, { maxKeys: 2 }),
    ),
    { maxKeys: 4 },
  )
  .map((value) => canonicalJson(value))

test('postings list exactly the matching events, and the filter matches each of their slices', () => {
  const anyEvents = fc.array(fc.oneof(likeMetadata, fc.constant(null)), {
    minLength: 1,
    maxLength: 80,
    size: 'max',
  })
  fc.assert(
    fc.property(anyEvents, fc.integer({ min: 200, max: 5_000 }), (texts, bytesMax) => {
      const sliceEvents = Math.ceil(texts.length / 16)
      const table = tableOf(
        texts.map((metadata) => ({ metadata })),
        sliceEvents,
      )
      const filter = buildTokenFilter(table, { bytesMax })
      const postings = buildPostings(table, { events: texts.length, bytesMax })
      assert(postings.length <= bytesMax)
      const terms = new Map<string, MetadataTerm>()
      for (const text of texts) {
        visitNodes(JSON.parse(text ?? '{}'), (path, value) => {
          terms.set(JSON.stringify([path, value]), {
            path,
            values: value === null ? null : [value],
          })
        })
      }
      for (const term of terms.values()) {
        const metadata = [term]
        const [wanted] = requiredChecks({ ...NO_FILTER, metadata }, SEED).flat()
        assert(wanted)
        const matches = texts.map((text) => hasTerms(text, metadata))
        for (const [position, isMatch] of matches.entries()) {
          if (isMatch) assert(mayHave(filter, wanted.token, Math.floor(position / sliceEvents)))
        }
        const marks = new Uint8Array(texts.length)
        const isPosted = markPosted(postedList(postings, wanted.token), wanted, marks)
        if (isPosted) assert.deepEqual([...marks], matches.map(Number))
        else assert(bytesMax < 5_000 || matches.filter(Boolean).length < 3)
      }
    }),
    { numRuns: 40 },
  )
})

function postedList(postings: Buffer, token: SearchToken): Buffer {
  const list = postingListOf(token)
  const endOf = (nth: number) =>
    POSTINGS_HEADER_BYTES + (nth < 0 ? 0 : postings.readUInt16LE(nth * 2))
  return postings.subarray(endOf(list - 1), endOf(list))
}

test('a filter of the usual size admits about one in 250 tokens that were not added', () => {
  const added = new Set(Array.from({ length: 10_000 }, (_, nth) => Math.imul(nth, 0x9e3779b1)))
  const table = new TokenTable({ sliceEvents: 64 })
  table.startBlock(SEED)
  for (const token of added) table.add(token, token)
  const filter = buildTokenFilter(table, { bytesMax: Infinity })
  assert(filter.length <= 10_000 * 1.6)
  const others = Array.from({ length: 20_000 }, (_, nth) => Math.imul(nth + 1, 0x85ebca6b))
  const admitted = others.filter((token) => !added.has(token) && mayHave(filter, token)).length
  assert(admitted < 20_000 / 150, `${admitted} of 20,000`)
})

test('large metadata is read in steps', () => {
  const metadata = canonicalJson(
    Object.fromEntries(Array.from({ length: 20_000 }, (_, nth) => [`k${nth}`, nth])),
  )
  const table = new TokenTable({ sliceEvents: 64 })
  let steps = 0
  const work = addTokens([{ traceId: null, actor: null, metadata }], table)
  while (work.next().done !== true) steps += 1
  assert(steps > 30, `${steps} steps`)
  assert(table.size > 59_000)
})
