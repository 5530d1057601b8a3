import type { FastifyReply } from 'fastify'
import { sqlStateOf, SQLSTATE } from '../../platform/pg/database.ts'

/**
 * During a rolling deployment, the database may not have this version's newest table yet. Its list is then
 * empty and a header says why, so that the rest of the page still works.
 */
export async function listOrReportDrift<T>(
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
