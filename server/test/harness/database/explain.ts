import assert from 'node:assert/strict'
import { type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type { Pool } from 'pg'
import { keptPlanName } from '../../../src/platform/pg/kept-plan.ts'
import type { Queryable } from '../../../src/platform/pg/database.ts'
import type { Tables } from '../../../src/platform/pg/tables.ts'

/** One node of PostgreSQL's plan, as `explain (format json)` prints it. */
export type PlanNode = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  // Only with `analyze`, the first two as averages per loop.
  'Actual Rows'?: number
  'Rows Removed by Filter'?: number
  'Actual Loops'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: PlanNode[]
}

/** Something that runs SQL: a pool, or a client with its own settings. */
export type Runner = { query: (text: string, values: unknown[]) => Promise<{ rows: unknown[] }> }

/** The plan nodes of every statement that `run` sends, with its parameters. */
export async function explain(
  pool: Pool,
  run: (db: Queryable) => Promise<unknown>,
): Promise<PlanNode[]> {
  const sent = await listSent(pool, run)
  const client = await pool.connect()
  try {
    const plans: PlanNode[] = []
    for (const { sql, parameters } of sent) {
      // A transaction and its settings are repeated, because later plans depend on them.
      if (IS_SETUP.test(sql)) await client.query(sql, [...parameters])
      else plans.push(...(await explainText(client, sql, [...parameters])))
    }
    return plans
  } finally {
    client.release()
  }
}

const IS_SETUP = /^(begin|start transaction|commit|select set_config)/

/** Like `explain`, for the generic plan, which PostgreSQL keeps for any parameters. */
export async function explainKept(
  pool: Pool,
  run: (db: Queryable) => Promise<unknown>,
): Promise<PlanNode[]> {
  const sent = await listSent(pool, run)
  const plans = await Promise.all(
    sent.map(async ({ sql }) => {
      assert(keptPlanName(sql), 'a statement whose plan is kept')
      const { rows } = await pool.query(`explain (generic_plan, format json) ${sql}`)
      return flatten(rootOf(rows[0]))
    }),
  )
  return plans.flat()
}

/**
 * How many rows of a table and its partitions the statements of `run` read, whether or not they
 * return them, and how many blocks in total. A scan of many index entries that match no row shows
 * only in the blocks.
 */
export async function measureReads(
  pool: Pool,
  table: string,
  run: (db: Queryable) => Promise<unknown>,
): Promise<{ rows: number; blocks: number }> {
  const reads = { rows: 0, blocks: 0 }
  for (const { sql, parameters } of await listSent(pool, run)) {
    const text = `explain (analyze, buffers, format json) ${sql}`
    const { rows } = await pool.query(text, [...parameters])
    const root = rootOf(rows[0])
    reads.blocks += (root['Shared Hit Blocks'] ?? 0) + (root['Shared Read Blocks'] ?? 0)
    for (const node of flatten(root)) {
      if (node['Relation Name']?.startsWith(table) !== true) continue
      const perLoop = (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)
      reads.rows += Math.round(perLoop * (node['Actual Loops'] ?? 0))
    }
  }
  return reads
}

async function listSent(
  pool: Pool,
  run: (db: Queryable) => Promise<unknown>,
): Promise<CompiledQuery[]> {
  const sent: CompiledQuery[] = []
  const dialect = new PostgresDialect({ pool })
  await run(new Kysely<Tables>({ dialect, log: ({ query }) => void sent.push(query) }))
  assert(sent.length > 0, 'a statement was sent')
  return sent
}

export async function explainText(
  runner: Runner,
  text: string,
  values: unknown[] = [],
): Promise<PlanNode[]> {
  const { rows } = await runner.query(`explain (format json) ${text}`, values)
  return flatten(rootOf(rows[0]))
}

export function relationsOf(nodes: readonly PlanNode[]): string[] {
  return [...new Set(nodes.flatMap((node) => node['Relation Name'] ?? []))].toSorted()
}

function rootOf(row: unknown): PlanNode {
  assert(typeof row === 'object' && row !== null && 'QUERY PLAN' in row)
  const root: { Plan: PlanNode }[] = JSON.parse(JSON.stringify(row['QUERY PLAN']))
  assert(root[0])
  return root[0].Plan
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}
