import { sql } from 'kysely'
import type { Id } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

export type SignerId = Id<'signer'>

/**
 * Takes or renews the lease. Returns false while another node has it. The times are the database's. A lease that
 * would outlast a new one was taken while its clock was ahead.
 */
export async function claimSignerLease(
  db: Queryable,
  { holder, leaseMs }: { holder: SignerId; leaseMs: number },
): Promise<boolean> {
  const { rows } = await sql`
    insert into signer_lease as lease (holder, expires_at)
    values (${holder}, now() + ${leaseMs} * interval '1 millisecond')
    on conflict (is_only) do update set holder = excluded.holder, expires_at = excluded.expires_at
     where lease.holder = excluded.holder
        or lease.expires_at < now() or lease.expires_at > excluded.expires_at
    returning holder`.execute(db)
  return rows.length === 1
}

/** Lets another node sign at once. */
export async function releaseSignerLease(db: Queryable, holder: SignerId): Promise<void> {
  await sql`update signer_lease set expires_at = '-infinity' where holder = ${holder}`.execute(db)
}
