import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import { copyRows, loadRows } from '../copy-stream.ts'
import { inLoadOrder } from '../load-order.ts'
import { loadTableText } from '../restore-store.ts'
import { copyTableText, listReferences, type TableColumns } from '../snapshot-store.ts'
import {
  beginBaseline,
  copyChangedText,
  copyKeysText,
  countRows,
  createStage,
  deleteStaged,
  deleteUnlisted,
  dropStage,
  emptyTables,
  insertStaged,
  type MovedTable,
} from './move-store.ts'

type TableMove = {
  source: PoolClient
  target: PoolClient
  tables: readonly MovedTable[]
  /** Called before each table. */
  onTable: (done: number, total: number) => void
}

/** Everything in the source that changed after it has a transaction number from this one on. */
export type Baseline = { horizon: string }

/**
 * Tables without foreign keys can grow with the events. They are copied while the source is in use, and the last step
 * copies only what has changed. All others are small, and the last step copies them.
 */
const isCopiedAhead = ({ key, hasReferences }: MovedTable): boolean =>
  !hasReferences && key.length > 0

/** Copies the large tables as of one moment, in place of what an earlier attempt has copied. */
export async function moveBaseline({
  source,
  target,
  tables,
  onTable,
}: TableMove): Promise<Baseline> {
  const ahead = tables.filter(isCopiedAhead)
  await emptyTables(
    target,
    tables.map(({ name }) => name),
  )
  const horizon = await beginBaseline(source)
  for (const [nth, table] of ahead.entries()) {
    onTable(nth, ahead.length)
    await moveWhole(source, target, table)
  }
  await source.query('commit')
  return { horizon }
}

/**
 * Makes all tables equal to those of the source, to which no one writes meanwhile. Compares the number of rows of each.
 * Call it in a transaction of the target.
 */
export async function moveChanges(
  { source, target, tables, onTable }: TableMove,
  { horizon }: Baseline,
): Promise<void> {
  const ahead = tables.filter(isCopiedAhead)
  const small = tables.filter((table) => !isCopiedAhead(table))
  let done = 0
  for (const table of ahead) {
    onTable(done++, tables.length)
    await moveChanged({ source, target, table, horizon })
  }
  await emptyTables(
    target,
    small.map(({ name }) => name),
  )
  for (const table of inLoadOrder(small, await listReferences(source))) {
    onTable(done++, tables.length)
    await moveWhole(source, target, table)
  }
  for (const { name } of tables) {
    const counts = [await countRows(source, name), await countRows(target, name)]
    if (counts[0] === counts[1]) continue
    throw new OperatorError(
      `The copy is wrong: the table ${name} has ${counts[0]} rows in the source and ${counts[1]} in the target. The source accepts events again. Report this as a bug.`,
    )
  }
}

async function moveWhole(
  source: PoolClient,
  target: PoolClient,
  table: TableColumns,
): Promise<void> {
  await loadRows(
    target,
    loadTableText(table),
    copyRows(source, copyTableText(table), () => {}),
  )
}

const CHANGED = 'moved_row'
const KEYS = 'moved_key'

async function moveChanged({
  source,
  target,
  table,
  horizon,
}: Pick<TableMove, 'source' | 'target'> & Baseline & { table: MovedTable }): Promise<void> {
  const { name, key, columns } = table
  const staged = { name: CHANGED, columns }
  await createStage(target, CHANGED, table)
  const changed = copyRows(source, copyChangedText(table, horizon), () => {})
  const added = await loadRows(target, loadTableText(staged), changed)
  if (added > 0) await deleteStaged(target, CHANGED, table)
  if ((await countRows(target, name)) + added !== (await countRows(source, name))) {
    // Rows were deleted from the source.
    await createStage(target, KEYS, { name, columns: key })
    const keys = copyRows(source, copyKeysText(table), () => {})
    await loadRows(target, loadTableText({ name: KEYS, columns: key }), keys)
    await deleteUnlisted(target, KEYS, table)
    await dropStage(target, KEYS)
  }
  if (added > 0) await insertStaged(target, CHANGED, table)
  await dropStage(target, CHANGED)
}
