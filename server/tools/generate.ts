import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startEngine } from '../src/platform/engine/embedded-postgres.ts'
import { createLogger } from '../src/platform/logger.ts'
import { migrate } from '../src/platform/pg/migrate.ts'
import { noticeText } from './package/print-notice.ts'
import { CLIENT_TYPES, clientTypesText } from './print-client-types.ts'
import { configurationText } from './print-configuration.ts'
import { openapiTexts } from './print-openapi.ts'
import { schemaText } from './print-schema.ts'

/**
 * `npm run generate`: writes every committed file that is printed from the code. Tests compare each
 * with a fresh print, so a change of code and the file that follows from it are one commit.
 */
const ROOT = join(import.meta.dirname, '../..')

const { v1, dashboard } = await openapiTexts()
write('openapi/v1.json', v1)
write('openapi/dashboard.json', dashboard)
for (const client of CLIENT_TYPES) write(client.file, clientTypesText(client))
write('docs/configuration.md', configurationText())
write('NOTICE', noticeText())
write('server/schema.sql', await migratedSchemaText())

function write(name: string, text: string): void {
  const path = join(ROOT, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  process.stdout.write(`wrote ${name}\n`)
}

/** The schema of an empty database after every migration, on an engine of its own. */
async function migratedSchemaText(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-generate-'))
  try {
    await using engine = await startEngine({ dataDir, exclusive: true })
    await migrate({ connection: engine.connection, logger: createLogger('silent') })
    return await schemaText(engine.connection)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
