import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { runAtOnce } from '../../platform/scheduling/time-slice.ts'
import { canonicalJson } from '../canonical.ts'
import { NO_FILTER } from '../event-filter.ts'
import { hasMetadataValue, hasTerms, type MetadataTerm } from './metadata-term.ts'
import {
  addTokens,
  requiredTokens,
  type SearchToken,
  type TokenizedEvent,
} from './search-tokens.ts'
import { BUCKET_BYTES, bucketMayHave, buildTokenFilter } from './token-filter.ts'

function tokensOf(event: Partial<TokenizedEvent>): Set<SearchToken> {
  const tokens = new Set<SearchToken>()
  const events = [{ traceId: null, actor: null, metadata: null, ...event }]
  runAtOnce(addTokens(events, tokens))
  return tokens
}

function mayHave(filter: Buffer, token: SearchToken): boolean {
  const start = (token % (filter.length / BUCKET_BYTES)) * BUCKET_BYTES
  return bucketMayHave(filter.subarray(start, start + BUCKET_BYTES), token)
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
      const filter = buildTokenFilter(tokens, { bytesMax })
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

test('a filter of the usual size admits about one in 250 tokens that were not added', () => {
  const added = new Set(
    Array.from({ length: 10_000 }, (_, nth) => Math.imul(nth, 0x9e3779b1) >>> 0),
  )
  const filter = buildTokenFilter(added, { bytesMax: Infinity })
  assert(filter.length <= 10_000 * 1.6)
  const others = Array.from({ length: 20_000 }, (_, nth) => Math.imul(nth + 1, 0x85ebca6b) >>> 0)
  const admitted = others.filter((token) => !added.has(token) && mayHave(filter, token)).length
  assert(admitted < 20_000 / 150, `${admitted} of 20,000`)
})

test('large metadata is read in steps', () => {
  const metadata = canonicalJson(
    Object.fromEntries(Array.from({ length: 20_000 }, (_, nth) => [`k${nth}`, nth])),
  )
  const tokens = new Set<SearchToken>()
  let steps = 0
  const work = addTokens([{ traceId: null, actor: null, metadata }], tokens)
  while (work.next().done !== true) steps += 1
  assert(steps > 30, `${steps} steps`)
  assert(tokens.size > 59_000)
})
