import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { openapiTexts } from '../src/command/openapi.ts'
import { startEngine } from '../src/platform/engine/embedded-postgres.ts'
import { createLogger } from '../src/platform/logger.ts'
import { migrate } from '../src/platform/pg/migrate.ts'
import { configurationText } from './print-configuration.ts'
import { schemaText } from './print-schema.ts'

/**
 * `npm run generate`: writes every committed file that is printed from the code. Tests compare each
 * with a fresh print, so a change of code and the file that follows from it are one commit.
 */
const ROOT = join(import.meta.dirname, '../..')

const { v1, dashboard } = await openapiTexts()
write('openapi/v1.json', v1)
write('openapi/dashboard.json', dashboard)
write('dashboard/src/api/schema.d.ts', clientTypesText())
write('docs/configuration.md', configurationText())
write('server/schema.sql', await migratedSchemaText())

function write(name: string, text: string): void {
  const path = join(ROOT, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  process.stdout.write(`wrote ${name}\n`)
}

/** The types of the dashboard's client. Their generator needs an older TypeScript, so it lives apart. */
function clientTypesText(): string {
  const workspace = createRequire(join(ROOT, 'tools/sdkgen/package.json'))
  const generator = join(
    dirname(workspace.resolve('openapi-typescript/package.json')),
    'bin/cli.js',
  )
  const options = [generator, join(ROOT, 'openapi/dashboard.json')]
  // Node's default is 1 MiB, and the types are larger.
  return execFileSync(process.execPath, options, { encoding: 'utf8', maxBuffer: 64 * 1_024 ** 2 })
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
