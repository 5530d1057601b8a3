import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'

type Connection = { host: string; port: number; user: string; password: string; database: string }

export type TestDatabase = AsyncDisposable & { connection: Connection; url: string }

/** A separate database, cloned from the migrated template that `npm test` prepared. */
export async function cloneDatabase(): Promise<TestDatabase> {
  const text = process.env.TEST_CONNECTION
  assert(text, 'run tests with: npm test -- <file>')
  const template: Connection = JSON.parse(text)
  const name = `test_${randomBytes(6).toString('hex')}`
  // Copies the template's files, which takes half as long as writing its pages to the WAL.
  await onServer(
    template,
    `create database ${name} template ${template.database} strategy file_copy`,
  )
  const connection = { ...template, database: name }
  return {
    connection,
    url: urlOf(connection),
    [Symbol.asyncDispose]: () => onServer(template, `drop database ${name} with (force)`),
  }
}

/** Creates an empty database, for tests that migrate it themselves. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const template: Connection = JSON.parse(process.env.TEST_CONNECTION ?? 'null')
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(template, `create database ${name} template template0 strategy file_copy`)
  const connection = { ...template, database: name }
  return {
    connection,
    url: urlOf(connection),
    [Symbol.asyncDispose]: () => onServer(template, `drop database ${name} with (force)`),
  }
}

/** A socket folder can't be the host part of a URL, so it is in the query. */
export function urlOf({ host, port, user, password, database }: Connection): string {
  const socket = new URLSearchParams({ host }).toString()
  return `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?${socket}`
}

/** Connects to `postgres`, because a database can't be copied or dropped while in use. */
async function onServer(template: Connection, statement: string): Promise<void> {
  const client = new Client({ ...template, database: 'postgres' })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
