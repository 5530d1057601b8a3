import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { configurationText } from '../tools/print-configuration.ts'

test('docs/configuration.md matches config.ts (otherwise run npm run generate)', () => {
  const path = join(import.meta.dirname, '../../docs/configuration.md')
  assert.equal(readFileSync(path, 'utf8'), configurationText(), 'refresh it with: npm run generate')
})

test('docs/operations.md lists every event that the program logs, and no others', () => {
  const root = join(import.meta.dirname, '../..')
  const sources = globSync('server/src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] })
  const program = sources.map((path) => readFileSync(join(root, path), 'utf8')).join('\n')
  const table = readFileSync(join(root, 'docs/operations.md'), 'utf8')
  const documented = namesIn(table, /^\| `([a-z-]+\.[a-z-]+)`/gm)
  const quoted = namesIn(program, /['"]([a-z-]+\.[a-z-]+)['"]/g)
  assert.deepEqual(
    [...namesIn(program, /\bevent: '([a-z-]+\.[a-z-]+)'/g).difference(documented)],
    [],
  )
  assert.deepEqual([...documented.difference(quoted)], [])
})

function namesIn(text: string, pattern: RegExp): Set<string> {
  return new Set(Array.from(text.matchAll(pattern), ([, name = '']) => name))
}
