import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { query } from './engine.ts'
import type { TestApp } from './start-app.ts'

/** The keys of the files that the storage holds, in their order. Of a workspace, or of all. */
export function listFiles({ archiveUrl }: TestApp, workspaceId = ''): string[] {
  const root = new URL(archiveUrl).pathname
  const folder = join(root, workspaceId)
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => relative(root, join(folder, name)))
    .filter((name) => name.endsWith('.parquet'))
    .toSorted()
}

/** The storage holds the files that the catalogue names, no other, and none is being written. */
export async function assertNoStrays(annals: TestApp): Promise<void> {
  const { connection } = annals.database
  const rows = await query(connection, 'select object_key from segment order by 1')
  assert.deepEqual(listFiles(annals), rows.map((row) => String(row['object_key'])).toSorted())
  assert.deepEqual(await query(connection, 'select object_key from segment_draft'), [])
}
