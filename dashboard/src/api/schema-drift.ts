import type { Query, QueryClient } from '@tanstack/react-query'

/** The table that the database lacked when a response was created, by the response's body. */
const tablesOfBodies = new WeakMap<object, string>()
/** The missing table, by the query that shows the body. */
const tablesOfQueries = new WeakMap<object, string>()

/** Call it for each response. A query can return the body or one of its values. */
export function noteDrift(body: unknown, table: string | null): void {
  if (table === null || !isObject(body)) return
  for (const value of [body, ...Object.values(body)]) {
    if (isObject(value)) tablesOfBodies.set(value, table)
  }
}

/** Call it for each result of a query. */
export function noteDriftOfQuery(data: unknown, query: object): void {
  const pages = isObject(data) && 'pages' in data && Array.isArray(data.pages) ? data.pages : [data]
  const tables = pages.map((body) => (isObject(body) ? tablesOfBodies.get(body) : undefined))
  const table = tables.find((name) => name !== undefined)
  if (table === undefined) tablesOfQueries.delete(query)
  else tablesOfQueries.set(query, table)
}

/** The queries of the current page whose results lack data. */
export function driftedQueries(client: QueryClient): readonly { query: Query; table: string }[] {
  return client
    .getQueryCache()
    .findAll({ type: 'active' })
    .flatMap((query) => {
      const table = tablesOfQueries.get(query)
      return table === undefined ? [] : [{ query, table }]
    })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
