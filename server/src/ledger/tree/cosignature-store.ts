import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** The last cosignature of a witness for one chain. `witness` is its verifier key. */
type Cosignature = {
  workspaceId: WorkspaceId
  witness: string
  size: number
  root: Buffer
  line: string
}

/** A published checkpoint without a cosignature of this witness. */
const isUncosigned = (witness: string) => sql`
  c.size is not null and c.tree_size >= c.size
  and not exists (select from cosignature s
                   where s.workspace_id = c.workspace_id and s.witness = ${witness}
                     and s.size = c.size and s.root = c.root)`

/** The chains whose newest checkpoint the witness hasn't cosigned, longest waiting first. */
export async function listUncosigned(
  db: Queryable,
  { witness, except, limit }: { witness: string; except: readonly WorkspaceId[]; limit: number },
): Promise<WorkspaceId[]> {
  const { rows } = await sql<{ workspaceId: string }>`
    select c.workspace_id as "workspaceId"
      from checkpoint c
     where ${isUncosigned(witness)} and c.workspace_id <> all (${except}::uuid[])
     order by c.signed_at
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId }) => assertId(workspaceId))
}

export async function countUncosigned(db: Queryable, witness: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from checkpoint c where ${isUncosigned(witness)}`.execute(db)
  return rows[0]?.count ?? 0
}

/** The size that the witness cosigned last, or 0. */
export async function readCosignedSize(
  db: Queryable,
  { workspaceId, witness }: Pick<Cosignature, 'workspaceId' | 'witness'>,
): Promise<number> {
  const row = await db
    .selectFrom('cosignature')
    .select('size')
    .where('workspace_id', '=', workspaceId)
    .where('witness', '=', witness)
    .executeTakeFirst()
  return row?.size ?? 0
}

/** Never replaces a cosignature of a larger tree, which another node may have stored meanwhile. */
export async function writeCosignature(
  db: Queryable,
  { workspaceId, witness, size, root, line }: Cosignature,
): Promise<void> {
  await sql`
    insert into cosignature as known (workspace_id, witness, size, root, line)
    values (${workspaceId}, ${witness}, ${size}, ${root}, ${line})
    on conflict (workspace_id, witness)
    do update set size = excluded.size, root = excluded.root, line = excluded.line
     where known.size <= excluded.size`.execute(db)
}
