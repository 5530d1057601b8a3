import type { TestDatabase } from '../database/template-db.ts'
import { SECRET_KEY } from './start-app.ts'

export type Source = { database: Pick<TestDatabase, 'url'>; archiveUrl: string }

/** The environment of a command on this database. */
export function commandEnv({ database, archiveUrl }: Source): Record<string, string> {
  return {
    ANNALS_DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ...(archiveUrl !== '' && { ANNALS_ARCHIVE_URL: archiveUrl }),
  }
}
