import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { configurationText } from '../tools/print-configuration.ts'

test('docs/configuration.md is what config.ts declares (else: npm run generate)', () => {
  const path = join(import.meta.dirname, '../../docs/configuration.md')
  assert.equal(readFileSync(path, 'utf8'), configurationText(), 'refresh it with: npm run generate')
})
