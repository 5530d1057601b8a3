import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefersBrotli, prefersGzip } from './accept-encoding.ts'

const CASES: [header: string | undefined, isGzip: boolean][] = [
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['GZip', true],
  ['x-gzip', true],
  ['gzip, deflate, br', true],
  ['deflate, br', false],
  ['br;q=1.0, gzip;q=0.2', true],
  ['gzip;q=0', false],
  ['gzip; q=0.000', false],
  ['*', true],
  ['*;q=0', false],
  ['*;q=0, gzip', true],
  ['gzip;q=0, *', false],
  ['identity', false],
  ['identity, gzip;q=0.5', false],
  ['identity;q=0.5, gzip;q=0.5', true],
  ['identity;q=0', false],
  ['identity;q=0, *', true],
  ['identity;q=0, gzip', true],
  ['gzip;q=2', false],
  ['gzip;q=nonsense', false],
  [',,gzip,', true],
]

for (const [header, isGzip] of CASES) {
  test(`Accept-Encoding ${JSON.stringify(header)} gets ${isGzip ? 'gzip' : 'an uncompressed response'}`, () => {
    assert.equal(prefersGzip(header), isGzip)
  })
}

const BROTLI_CASES: [header: string | undefined, isBrotli: boolean][] = [
  [undefined, false],
  ['gzip', false],
  ['gzip, deflate, br, zstd', true],
  ['br;q=0.5, gzip', false],
  ['br;q=0, *', false],
  ['*', true],
  ['identity, br;q=0.9', false],
]

for (const [header, isBrotli] of BROTLI_CASES) {
  test(`Accept-Encoding ${JSON.stringify(header)} gets ${isBrotli ? 'Brotli' : 'no Brotli'}`, () => {
    assert.equal(prefersBrotli(header), isBrotli)
  })
}
