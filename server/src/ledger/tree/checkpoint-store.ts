import { type Selectable, sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { CheckpointTable } from '../../platform/pg/tree-tables.ts'
import { COSIGNATURE, findCosignature, parseNoteKey } from '../../platform/tlog/signed-note.ts'

/** What a signed checkpoint says, and its text. */
export type Checkpoint = {
  origin: string
  size: number
  root: Buffer
  /** The signed note. */
  note: string
  /** The verifier key of its first signature. */
  vkey: string
  signedAt: Date
}

export type PublishedTree = {
  /** How many leaves the tiles contain at least. */
  treeSize: number
  /** Null if none is published yet. */
  checkpoint: Checkpoint | null
  /** What the witnesses of these verifier keys added to this checkpoint, as stored. */
  cosignatures: readonly { witness: string; line: string }[]
  /** Why the signer refuses to sign this chain. */
  refusal: string | null
}

export async function readPublishedTree(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<PublishedTree> {
  const row = await db
    .selectFrom('checkpoint')
    .selectAll()
    .select(COSIGNATURES.as('cosignatures'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  if (!row) return { treeSize: 0, checkpoint: null, cosignatures: [], refusal: null }
  const { tree_size: treeSize, cosignatures, refusal } = row
  return { treeSize, checkpoint: checkpointOf(row), cosignatures: cosignatures ?? [], refusal }
}

/** The checkpoint with its valid cosignatures. A forged one would make verifiers report the whole proof as forged. */
export function cosignedCheckpoint({
  checkpoint,
  cosignatures,
}: Pick<PublishedTree, 'checkpoint' | 'cosignatures'>): Checkpoint | null {
  if (checkpoint === null) return null
  const lines = cosignatures.map(({ witness, line }) => {
    const key = parseNoteKey(witness)
    return key?.type === COSIGNATURE ? findCosignature(checkpoint.note, line, key) : null
  })
  return { ...checkpoint, note: checkpoint.note + lines.filter((line) => line !== null).join('') }
}

/** As many witnesses as an operator can configure. */
const COSIGNATURES_MAX = 10

/** Cosignatures of older checkpoints are not valid for the newest one. */
const COSIGNATURES = sql<PublishedTree['cosignatures'] | null>`
  (select json_agg(json_build_object('witness', s.witness, 'line', s.line))
     from (select witness, line
             from cosignature
            where workspace_id = checkpoint.workspace_id
              and size = checkpoint.size and root = checkpoint.root
            order by witness
            limit ${COSIGNATURES_MAX}) s)`

function checkpointOf(row: Selectable<CheckpointTable>): Checkpoint | null {
  const { size, origin, root, note, vkey, signed_at: signedAt } = row
  if (size === null || origin === null || root === null) return null
  if (note === null || vkey === null || signedAt === null) return null
  return { origin, size, root, note, vkey, signedAt }
}

/**
 * Moves the size of the tree with compare-and-set, and publishes a checkpoint for it unless that is null.
 * Returns false if another signer was faster. A checkpoint never becomes smaller.
 */
export async function moveTree(
  trx: Queryable,
  workspaceId: WorkspaceId,
  move: { fromSize: number; toSize: number; checkpoint: Checkpoint | null },
): Promise<boolean> {
  const { fromSize, toSize, checkpoint } = move
  await sql`
    insert into checkpoint (workspace_id, tree_size) values (${workspaceId}, 0)
    on conflict do nothing`.execute(trx)
  const { numUpdatedRows } = await trx
    .updateTable('checkpoint')
    .set({
      tree_size: toSize,
      ...(checkpoint && {
        size: checkpoint.size,
        origin: checkpoint.origin,
        root: checkpoint.root,
        note: checkpoint.note,
        vkey: checkpoint.vkey,
        signed_at: checkpoint.signedAt,
        refusal: null,
      }),
    })
    .where('workspace_id', '=', workspaceId)
    .where('tree_size', '=', fromSize)
    .$if(checkpoint !== null, (update) =>
      update.where((is) =>
        is.or([is('size', 'is', null), is('size', '<=', checkpoint?.size ?? 0)]),
      ),
    )
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Removes a checkpoint that the signer has not signed. */
export async function unpublish(
  db: Queryable,
  workspaceId: WorkspaceId,
  { size }: Pick<Checkpoint, 'size'>,
): Promise<void> {
  await sql`
    update checkpoint
       set size = null, origin = null, root = null, note = null, vkey = null, signed_at = null
     where workspace_id = ${workspaceId} and size = ${size}`.execute(db)
}

export async function setRefusal(
  db: Queryable,
  workspaceId: WorkspaceId,
  refusal: string | null,
): Promise<void> {
  await sql`
    insert into checkpoint (workspace_id, tree_size, refusal) values (${workspaceId}, 0, ${refusal})
    on conflict (workspace_id) do update set refusal = excluded.refusal
     where checkpoint.refusal is distinct from excluded.refusal`.execute(db)
}

/**
 * Unpublishes the checkpoint, the tiles and the cosignatures when an operator accepts another history of the chain.
 * The signer then publishes new ones. Of the checkpoints of earlier days, those of unchanged events stay.
 */
export async function resetTree(
  trx: Queryable,
  { workspaceId, unchangedSize }: { workspaceId: WorkspaceId; unchangedSize: number },
): Promise<void> {
  await sql`
    delete from checkpoint_day
     where workspace_id = ${workspaceId} and size > ${unchangedSize}`.execute(trx)
  await sql`
    update checkpoint
       set tree_size = 0, size = null, origin = null, root = null, note = null, vkey = null,
           signed_at = null
     where workspace_id = ${workspaceId}`.execute(trx)
  await sql`
    update cosignature set size = 0, root = decode(repeat('00', 32), 'hex')
     where workspace_id = ${workspaceId}`.execute(trx)
}

/**
 * The chains whose published checkpoint has another size: the one of each company that waits longest, then the
 * second of each, and so on. A larger size is wrong, and the signer finds out why.
 */
export async function listUnsigned(
  db: Queryable,
  {
    except,
    perCompany,
    limit,
  }: { except: readonly WorkspaceId[]; perCompany: number; limit: number },
): Promise<WorkspaceId[]> {
  const { rows } = await sql<{ workspaceId: string }>`
    ${KEEP_PLAN}
    select due.workspace_id as "workspaceId"
      from (select h.workspace_id, c.signed_at,
                   row_number() over (partition by w.company_id order by c.signed_at nulls first) as rank
              from chain_head h
              join workspace w on w.id = h.workspace_id
              left join checkpoint c on c.workspace_id = h.workspace_id
             where h.seq <> coalesce(c.size, 0) and h.workspace_id <> all (${except}::uuid[])) as due
     where due.rank <= ${perCompany}
     order by due.rank, due.signed_at nulls first
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId }) => assertId(workspaceId))
}

/** The chains after `afterId` that have a checkpoint or a refusal, by id. */
export async function listPublished(
  db: Queryable,
  { afterId, limit }: { afterId: WorkspaceId | null; limit: number },
): Promise<WorkspaceId[]> {
  const rows = await db
    .selectFrom('checkpoint')
    .select('workspace_id')
    .$if(afterId !== null, (select) => select.where('workspace_id', '>', afterId))
    .orderBy('workspace_id')
    .limit(limit)
    .execute()
  return rows.map((row) => assertId(row.workspace_id))
}

/** How many chains the signer refuses to sign. */
export async function countRefused(db: Queryable): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from checkpoint where refusal is not null`.execute(db)
  return rows[0]?.count ?? 0
}
