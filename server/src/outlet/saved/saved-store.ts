import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import {
  assertId,
  type CompanyId,
  type Id,
  type UserId,
  type WorkspaceId,
} from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import type { Viewer } from '../../tenancy/viewer.ts'
import type { Saved } from './saved.ts'

type SavedRow = {
  id: string
  company_id: string
  workspace_id: string | null
  owner_id: string | null
  owner_email: string | null
  name: string
  created_at: Date
  updated_at: Date
}

type Key<Kind extends string> = Pick<Saved<Kind>, 'companyId' | 'id'>
type New<Kind extends string> = Key<Kind> & { ownerId: UserId; now: Date }
type Content = { workspaceId: WorkspaceId | null; name: string }

type SavedTable<Kind extends string, Item extends Saved<Kind>, Row, More> = {
  table: 'explorer_view' | 'export_template'
  /** How many a company can have. */
  max: number
  /** What an error calls them. */
  noun: string
  /** The columns that only this table has. */
  columnsOf: (content: Partial<More>) => Record<string, string | undefined>
  toItem: (common: Saved<Kind>, row: Row) => Item
  canSee: (viewer: Viewer, item: Item) => boolean
}

/** Stores what the members of a company save. They see only what `canSee` allows. */
export class SavedStore<Kind extends string, Item extends Saved<Kind>, Row, More> {
  readonly #options: SavedTable<Kind, Item, Row, More>
  readonly #table

  constructor(options: SavedTable<Kind, Item, Row, More>) {
    this.#options = options
    this.#table = sql.table(options.table)
  }

  /** Call it inside a transaction: it locks the company to count what it has. */
  async insert(trx: Queryable, item: New<Kind> & Content & More): Promise<void> {
    await this.#refuseTooMany(trx, item.companyId)
    const columns = Object.entries({
      company_id: item.companyId,
      id: item.id,
      workspace_id: item.workspaceId,
      owner_id: item.ownerId,
      name: item.name,
      ...this.#options.columnsOf(item),
      created_at: item.now,
      updated_at: item.now,
    })
    await sql`
      insert into ${this.#table} (${sql.join(columns.map(([name]) => sql.ref(name)))})
      values (${sql.join(columns.map(([, value]) => value))})`.execute(trx)
  }

  async #refuseTooMany(trx: Queryable, companyId: CompanyId): Promise<void> {
    const { max, noun } = this.#options
    await lockCompany(trx, companyId)
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from ${this.#table} where company_id = ${companyId}`.execute(trx)
    if ((rows[0]?.count ?? 0) < max) return
    throw new ApiError('conflict', {
      message: `A company can have at most ${max} ${noun}. Delete one first.`,
    })
  }

  /** What a member can see, sorted by name. */
  async list(db: Queryable, viewer: Viewer): Promise<Item[]> {
    const { max, canSee } = this.#options
    const { rows } = await sql<SavedRow & Row>`
      ${this.#select(viewer.companyId)} order by s.name, s.id limit ${max}`.execute(db)
    return rows.map((row) => this.#toItem(row)).filter((item) => canSee(viewer, item))
  }

  /** Returns null if it doesn't exist or the member can't see it. */
  async find(db: Queryable, viewer: Viewer, id: Id<Kind>): Promise<Item | null> {
    const { rows } = await sql<SavedRow & Row>`
      ${this.#select(viewer.companyId)} and s.id = ${id}`.execute(db)
    const item = rows[0] && this.#toItem(rows[0])
    return item && this.#options.canSee(viewer, item) ? item : null
  }

  /** Like `find`, but locks the row until the transaction ends. */
  async lock(trx: Queryable, viewer: Viewer, id: Id<Kind>): Promise<Item | null> {
    await sql`
      select id from ${this.#table}
       where company_id = ${viewer.companyId} and id = ${id} for update`.execute(trx)
    return await this.find(trx, viewer, id)
  }

  async update(
    db: Queryable,
    { companyId, id }: Key<Kind>,
    changes: Partial<Content & More>,
    now: Date,
  ): Promise<void> {
    const columns = Object.entries({
      workspace_id: changes.workspaceId,
      name: changes.name,
      ...this.#options.columnsOf(changes),
      updated_at: now,
    }).filter(([, value]) => value !== undefined)
    await sql`
      update ${this.#table}
         set ${sql.join(columns.map(([name, value]) => sql`${sql.ref(name)} = ${value}`))}
       where company_id = ${companyId} and id = ${id}`.execute(db)
  }

  async delete(db: Queryable, { companyId, id }: Key<Kind>): Promise<void> {
    await sql`
      delete from ${this.#table} where company_id = ${companyId} and id = ${id}`.execute(db)
  }

  #select(companyId: CompanyId) {
    return sql`
      select s.*, u.email as owner_email
        from ${this.#table} as s left join app_user as u on u.id = s.owner_id
       where s.company_id = ${companyId}`
  }

  #toItem(row: SavedRow & Row): Item {
    const common = {
      id: assertId<Kind>(row.id),
      companyId: assertId<'company'>(row.company_id),
      workspaceId: row.workspace_id === null ? null : assertId<'workspace'>(row.workspace_id),
      ownerId: row.owner_id === null ? null : assertId<'user'>(row.owner_id),
      ownerEmail: row.owner_email,
      name: row.name,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }
    return this.#options.toItem(common, row)
  }
}
