import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { parseJsonl } from './exports.ts'
import { CORE_FIELDS } from './row-fields.ts'
import type { TestResponse } from '../app/start-app.ts'

type Line = TestResponse['json']

/** The lines of one workspace in a complete export, whose chain has been verified. */
export type CheckedChain = { firstSeq: number; lastSeq: number; rows: Line[]; stubs: Line[] }

/**
 * Checks a complete export as docs/chain-format.md says, without code of the service: the hash of each line, and
 * that each workspace has a chain without gaps. Returns the chains in the order of the file.
 */
export function checkCompleteFile(text: string): Map<string, CheckedChain> {
  const chains = new Map<string, CheckedChain>()
  let previous: Line = null
  for (const line of parseJsonl(text)) {
    assert.equal(line.hash, hashOf(line), `the hash of ${line.seq}`)
    if (previous?.workspaceId === line.workspaceId) {
      assert.deepEqual([line.seq, line.prevHash], [previous.seq + 1, previous.hash])
    } else {
      assert(!chains.has(line.workspaceId), 'the lines of a workspace are consecutive')
    }
    previous = line
    const empty: CheckedChain = { firstSeq: line.seq, lastSeq: line.seq, rows: [], stubs: [] }
    const chain = chains.get(line.workspaceId) ?? empty
    chains.set(line.workspaceId, { ...chain, lastSeq: line.seq })
    if ('stub' in line) {
      assert.deepEqual(Object.keys(line), ['stub', ...CORE_FIELDS, 'hash'])
      assert.equal(line.stub, true)
      chain.stubs.push(line)
    } else {
      chain.rows.push(line)
    }
  }
  return chains
}

function hashOf(line: Line): string {
  const core = Object.fromEntries(CORE_FIELDS.map((name) => [name, line[name]]))
  const text = canonical({ v: 1, ...core })
  return createHash('sha256').update(`\0${text}`).digest('hex')
}

/** Canonical JSON of values whose numbers are integers. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join(',')}}`
}
