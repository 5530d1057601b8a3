import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { schemaText } from '../../tools/print-schema.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

test('server/schema.sql matches the migrations (otherwise run npm run generate)', async () => {
  await using database = await cloneDatabase()
  const printed = await schemaText(database.connection)
  const committed = readFileSync(join(import.meta.dirname, '../../schema.sql'), 'utf8')
  assert.equal(committed, printed, 'refresh it with: npm run generate')
})
