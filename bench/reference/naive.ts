import { createHash, randomUUID } from 'node:crypto'
import { fastify } from 'fastify'
import { Pool, type PoolClient } from 'pg'

/**
 * What most teams would write first: one INSERT per request on a pool of ten connections, two indexes,
 * jsonb. With CHAIN=1 each event is hashed onto the previous one in its workspace, under a row lock.
 */
const pool = new Pool({ ...JSON.parse(process.env.CONNECTION ?? '{}'), max: 10 })
await pool.query(`
  create table if not exists naive_event (
    id uuid primary key, workspace_id uuid not null, ts timestamptz not null, category text not null,
    action text not null, actor jsonb, resource jsonb, metadata jsonb, idempotency_key text,
    seq bigint, hash text, prev_hash text);
  create index if not exists naive_event__ts on naive_event (workspace_id, ts);
  create table if not exists naive_head (workspace_id uuid primary key, seq bigint not null, hash text not null)`)

type Body = Record<'category' | 'action' | 'idempotencyKey', string> &
  Record<'actor' | 'resource' | 'metadata', object>

const app = fastify()
app.post<{ Body: Body; Headers: { authorization: string } }>(
  '/v1/events',
  async (request, reply) => {
    const workspaceId = request.headers.authorization.slice(7)
    const id = process.env.CHAIN
      ? await insertChained(workspaceId, request.body)
      : await insert(pool, workspaceId, request.body, null)
    reply.code(201)
    return { id }
  },
)
const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${address}\n`)
process.on('SIGTERM', () => void app.close().then(() => pool.end()))

async function insert(
  db: Pool | PoolClient,
  workspaceId: string,
  body: Body,
  link: { seq: number; hash: string; prevHash: string } | null,
): Promise<string> {
  const id = randomUUID()
  await db.query({
    name: 'insert',
    text: `insert into naive_event values ($1, $2, now(), $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    values: [
      id,
      workspaceId,
      body.category,
      body.action,
      body.actor,
      body.resource,
      body.metadata,
      body.idempotencyKey,
      link?.seq ?? null,
      link?.hash ?? null,
      link?.prevHash ?? null,
    ],
  })
  return id
}

async function insertChained(workspaceId: string, body: Body): Promise<string> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query({
      name: 'make',
      text: `insert into naive_head values ($1, 0, '') on conflict do nothing`,
      values: [workspaceId],
    })
    const { rows } = await client.query<{ seq: string; hash: string }>({
      name: 'lock',
      text: 'select seq, hash from naive_head where workspace_id = $1 for update',
      values: [workspaceId],
    })
    const seq = Number(rows[0]?.seq) + 1
    const prevHash = rows[0]?.hash ?? ''
    const hash = createHash('sha256').update(prevHash).update(JSON.stringify(body)).digest('hex')
    const id = await insert(client, workspaceId, body, { seq, hash, prevHash })
    await client.query({
      name: 'move',
      text: 'update naive_head set seq = $2, hash = $3 where workspace_id = $1',
      values: [workspaceId, seq, hash],
    })
    await client.query('commit')
    return id
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
