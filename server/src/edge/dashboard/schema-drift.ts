import type { FastifyReply } from 'fastify'
import { missingTableOf } from '../../platform/pg/database.ts'

/**
 * During a rolling deployment, the database may not have this version's newest table yet. Its list is then
 * empty and a header names the table, so that the rest of the page still works.
 */
export async function listOrReportDrift<T>(
  reply: FastifyReply,
  read: () => Promise<T[]>,
): Promise<T[]> {
  return await readOrReportDrift(reply, [], read)
}

/** Like `listOrReportDrift`, for a response that is more than a list. */
export async function readOrReportDrift<T, Empty = T>(
  reply: FastifyReply,
  empty: Empty,
  read: () => Promise<T>,
): Promise<T | Empty> {
  try {
    return await read()
  } catch (error) {
    const table = missingTableOf(error)
    if (table === null) throw error
    reply.header('x-service-schema-drift', table)
    return empty
  }
}
