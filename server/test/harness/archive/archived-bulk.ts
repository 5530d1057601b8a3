import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type Outcome, runAnnals } from '../app/annals-process.ts'
import { type Reference, downloadReference } from '../export/cut-downloads.ts'
import { storeBulk } from '../export/exports.ts'
import { countStored } from '../event/ledger.ts'
import type { TestApp } from '../app/start-app.ts'

/**
 * 20 MB of rows in total, so that the last file is not yet requested when a client has read the
 * first bytes.
 */
const WORKSPACES = ['First', 'Second'] as const
const SEGMENTS_EACH = 2
const ROWS_PER_SEGMENT = 100

/** All events, hot and archived. */
export const WHOLE = {
  source: 'HOT_AND_ARCHIVED',
  format: 'JSONL',
  filters: { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' },
}

/** A company without hot events, with two archived files in each of two workspaces. */
export async function archiveBulk(
  annals: TestApp,
  env: Record<string, string> = {},
): Promise<{ key: string; workspaceIds: string[]; reference: Reference }> {
  const { companyKey: key, workspaces } = await annals.createCompany({ workspaces: WORKSPACES })
  for (let segment = 0; segment < SEGMENTS_EACH; segment += 1) {
    for (const { workspaceKey } of workspaces) {
      await storeBulk(annals, workspaceKey, ROWS_PER_SEGMENT)
    }
    const { code, stderr } = await archiveNow(annals, env)
    assert.equal(code, 0, stderr)
  }
  assert.equal(await countStored(annals), 0)
  const rows = workspaces.length * SEGMENTS_EACH * ROWS_PER_SEGMENT
  const reference = await downloadReference(annals, key, { ...WHOLE, rows })
  return { key, workspaceIds: workspaces.map(({ id }) => id), reference }
}

/** Runs the command for everything received so far. */
export async function archiveNow(
  annals: TestApp,
  env: Record<string, string> = {},
): Promise<Outcome> {
  const before = new Date(Date.now() + 1_000).toISOString()
  return await runAnnals(['archive', '--before', before], {
    ANNALS_DATABASE_URL: annals.database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    ANNALS_ARCHIVE_URL: annals.archiveUrl,
    ...env,
  })
}
