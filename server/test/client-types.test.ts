import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CLIENT_TYPES, clientTypesText } from '../tools/print-client-types.ts'

for (const client of CLIENT_TYPES) {
  test(`${client.file} matches openapi/${client.document}.json (otherwise run npm run generate)`, () => {
    const path = join(import.meta.dirname, '../..', client.file)
    assert.equal(readFileSync(path, 'utf8'), clientTypesText(client), 'run npm run generate')
  })
}
