import type { Config } from '../../config.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import type { Database } from '../../platform/pg/database.ts'
import type { SchemaReport } from '../../platform/pg/migrate.ts'
import type { Secret } from '../../platform/secret/secret.ts'

/** The result of one check. A finding that is not ok has a sentence that says what to do. */
export type Finding = {
  status: 'ok' | 'warning' | 'failed' | 'skipped'
  message: string
  advice: string | null
}

export const finding = {
  ok: (message: string): Finding => ({ status: 'ok', message, advice: null }),
  warning: (message: string, advice: string): Finding => ({ status: 'warning', message, advice }),
  failed: (message: string, advice: string): Finding => ({ status: 'failed', message, advice }),
  skipped: (message: string): Finding => ({ status: 'skipped', message, advice: null }),
}

export type Machine = { config: Config; backupFolder: string | null }

/** What the checks of a database get. None of them writes. */
export type OpenLedger = Machine & {
  database: Database
  archive: ObjectStore
  schema: SchemaReport
  /** Null if the data folder has none, or a damaged one. */
  secretKey: Secret<Buffer> | null
}

export type Check<Subject> = {
  name: string
  run: (subject: Subject) => Promise<Finding>
  /** The name of an earlier check. If that one fails, this one would blame the wrong thing, or hang. */
  needs?: string
}
