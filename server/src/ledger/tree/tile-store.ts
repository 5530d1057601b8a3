import { sql } from 'kysely'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Tile, TileId } from './tile.ts'

/** Those of these tiles that exist, as a function of their place. */
export async function readTiles(
  db: Queryable,
  workspaceId: WorkspaceId,
  ids: readonly TileId[],
): Promise<(id: TileId) => Buffer | null> {
  if (ids.length === 0) return () => null
  const { rows } = await sql<Tile>`
    select t.level, t.number, t.hashes
      from unnest(${ids.map(({ level }) => level)}::smallint[],
                  ${ids.map(({ number }) => number)}::bigint[]) as wanted (level, number)
      join tree_tile t
        on t.workspace_id = ${workspaceId} and t.level = wanted.level and t.number = wanted.number`.execute(
    db,
  )
  const tiles = new Map(rows.map(({ level, number, hashes }) => [`${level} ${number}`, hashes]))
  return ({ level, number }) => tiles.get(`${level} ${number}`) ?? null
}

/** Move the tree's size in the same transaction, so that two writers can't mix their tiles. */
export async function writeTiles(
  trx: Queryable,
  workspaceId: WorkspaceId,
  tiles: readonly Tile[],
): Promise<void> {
  if (tiles.length === 0) return
  await sql`
    insert into tree_tile (workspace_id, level, number, hashes)
    select ${workspaceId}, t.level, t.number, t.hashes
      from unnest(${tiles.map(({ level }) => level)}::smallint[],
                  ${tiles.map(({ number }) => number)}::bigint[],
                  ${tiles.map(({ hashes }) => hashes)}::bytea[]) as t (level, number, hashes)
    on conflict (workspace_id, level, number) do update set hashes = excluded.hashes`.execute(trx)
}
