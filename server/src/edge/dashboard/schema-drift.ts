import type { FastifyReply } from 'fastify'
import { sqlStateOf, SQLSTATE } from '../../platform/pg.ts'

/**
 * In a rolling deploy this program may meet a database that does not have its newest table yet. A list
 * of it is empty then, and a header says why; what the page shows beside it still works.
 */
export async function listOrDrift<T>(
  reply: FastifyReply,
  table: string,
  read: () => Promise<T[]>,
): Promise<T[]> {
  try {
    return await read()
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.UNDEFINED_TABLE) throw error
    reply.header('x-service-schema-drift', table)
    return []
  }
}
