import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefersGzip } from './accept-encoding.ts'

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
  test(`Accept-Encoding ${JSON.stringify(header)} gets ${isGzip ? 'gzip' : 'the plain bytes'}`, () => {
    assert.equal(prefersGzip(header), isGzip)
  })
}
