import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import { findFilledTable } from '../restore-store.ts'
import { listMigrations, listTables } from '../snapshot-store.ts'
import { readLedgerMove, readTargetRights, type TargetRights } from './move-store.ts'

/** Throws if the login can't create the ledger in this database, or if it has rows. Changes nothing. */
export async function refuseUnfitTarget(target: PoolClient): Promise<void> {
  const problem = problemOf(await readTargetRights(target))
  if (problem !== null) throw new OperatorError(`Nothing was moved: ${problem}`)
  // Before it is migrated, because it may be the database of an older release.
  if ((await readLedgerMove(target)) === null) await refuseFilledTarget(target)
}

function problemOf(rights: TargetRights): string | null {
  const { user, database, foreignTable, foreignOwner, lackingRoles } = rights
  if (rights.isReadOnly) {
    return 'the target is read-only or a standby. Use the address of the primary.'
  }
  if (foreignTable !== null) {
    return `the target is not empty: it has the table ${foreignTable}. Use an empty database.`
  }
  if (!rights.mayCreate) {
    return `the login ${user} can't create tables in the schema public of the target. As an administrator, run: alter database ${database} owner to ${user}`
  }
  if (foreignOwner !== null) {
    return `the tables in the target belong to ${foreignOwner}. Use that login, or an empty database.`
  }
  if (lackingRoles.length > 0 && !rights.mayCreateRoles) {
    return `the login ${user} can neither create roles nor act as ${lackingRoles.join(' and ')}. Create the roles as in docs/operations.md, "Use your own PostgreSQL", and run: grant ${lackingRoles.join(', ')} to ${user}`
  }
  return null
}

/** Throws if a migrated target has rows, so that no ledger is ever mixed with another. */
export async function refuseFilledTarget(target: PoolClient): Promise<void> {
  const names = (await listTables(target)).map(({ name }) => name)
  const filled = await findFilledTable(
    target,
    names.filter((name) => name !== 'schema_migration'),
  )
  if (filled === null) return
  throw new OperatorError(
    `Nothing was moved: the target is not empty, its table ${filled} has rows. Use an empty database.`,
  )
}

/** A newer program may have migrated one of the two. */
export async function refuseOtherSchema(source: PoolClient, target: PoolClient): Promise<void> {
  const [here, there] = [await listMigrations(source), await listMigrations(target)]
  const isSame =
    here.length === there.length &&
    here.every(({ checksum }, nth) => checksum === there[nth]?.checksum)
  if (isSame) return
  throw new OperatorError(
    `The source has schema version ${here.length}, and the target ${there.length}. Run the command with the release that all nodes use.`,
  )
}
