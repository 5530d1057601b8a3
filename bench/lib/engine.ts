import { Client } from 'pg'

export type EngineConnection = {
  host: string
  port: number
  user: string
  password: string
  database: string
}

/** A new cluster writes at half speed until its WAL files have been recycled once. */
export async function warmUpEngine(connection: EngineConnection): Promise<void> {
  await asOwner(connection, async (client) => {
    for (let round = 0; round < 2; round += 1) {
      await client.query(
        'create table warm as select n, repeat(md5(n::text), 8) as text from generate_series(1, 2000000) as n',
      )
      await client.query('drop table warm')
      await client.query('checkpoint')
    }
  })
}

/** All nodes of a database share one secret key. */
export const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')

/** For nodes that share one database, each in its own process. */
export function multiNodeEnv(connection: EngineConnection): Record<string, string> {
  const socket = new URLSearchParams({ host: connection.host }).toString()
  return {
    ANNALS_DATABASE_URL: `postgres://${connection.user}:${encodeURIComponent(connection.password)}@localhost:${connection.port}/${connection.database}?${socket}`,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_RATE_LIMITS: 'off',
  }
}

export function readSettings(connection: EngineConnection): Promise<Record<string, string>> {
  return asOwner(connection, async (client) => {
    const { rows } = await client.query<{ name: string; setting: string }>(
      `select name, setting from pg_settings
        where name in ('fsync', 'synchronous_commit', 'shared_buffers', 'wal_compression', 'full_page_writes', 'server_version')`,
    )
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  })
}

export async function asOwner<T>(
  connection: EngineConnection,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(connection)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
