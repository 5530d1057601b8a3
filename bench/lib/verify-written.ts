import assert from 'node:assert/strict'
import { Client } from 'pg'

const IDS_PER_READ = 20_000

/** Verifies that every acknowledged id is stored exactly once and every chain is valid. */
export async function verifyWritten(
  connection: object,
  acknowledged: readonly string[],
  verifyChains: () => string,
): Promise<string> {
  assert.equal(new Set(acknowledged).size, acknowledged.length, 'an id was used twice')
  const client = new Client(connection)
  await client.connect()
  let stored = 0
  for (let start = 0; start < acknowledged.length; start += IDS_PER_READ) {
    const ids = acknowledged.slice(start, start + IDS_PER_READ)
    const { rows } = await client.query<{ count: string }>(
      'select count(*) from event where id = any ($1::uuid[])',
      [ids],
    )
    stored += Number(rows[0]?.count)
  }
  await client.end()
  assert.equal(stored, acknowledged.length, 'an acknowledged event is missing or stored twice')
  return `verified: ${stored} acknowledged events are stored once; ${verifyChains().trim()}`
}
