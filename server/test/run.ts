import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensurePages } from '../src/command/build-pages.ts'
import { startEngine } from '../src/platform/embedded-postgres.ts'
import { createLogger } from '../src/platform/logger.ts'
import { migrate } from '../src/platform/migrate.ts'
import { check } from './check.ts'

/**
 * `npm test`: types, lint and format, then every test file against one PostgreSQL, in which each
 * file clones the migrated template for itself. Arguments name single files to run instead.
 */
const ROOT = join(import.meta.dirname, '../..')
const FILES = ['server/src/**/*.test.ts', 'server/test/**/*.test.ts', 'dashboard/test/**/*.test.ts']
/** A file that never ends must not hold up the result of all others. */
const RUN_MS_MAX = 40 * 60_000
const NEEDS_PAGES = /(^|\/)dashboard\/test\/browser\//

const chosen = process.argv.slice(2)
const files = chosen.length > 0 ? chosen : globSync(FILES, { cwd: ROOT }).toSorted()
process.exitCode = (chosen.length > 0 || check()) && (await runFiles()) ? 0 : 1

async function runFiles(): Promise<boolean> {
  const pages = files.some((file) => NEEDS_PAGES.test(file)) ? await buildPages() : null
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-test-'))
  try {
    await using engine = await startEngine({
      dataDir,
      exclusive: false,
      // Nothing here outlives a crash; tests of durability start a server of their own.
      settings: { max_connections: '300', fsync: 'off' },
    })
    await migrate({ connection: engine.connection, logger: createLogger('silent') })
    const runner = spawn(
      process.execPath,
      ['--test', '--test-timeout=180000', '--test-concurrency=2', ...files],
      {
        cwd: ROOT,
        stdio: 'inherit',
        env: {
          ...process.env,
          // Most of a file's start is compiling the program, which is the same for all of them.
          NODE_COMPILE_CACHE: join(dataDir, 'compiled'),
          TEST_CONNECTION: JSON.stringify(engine.connection),
          ...(pages !== null && { TEST_PAGES: pages }),
        },
      },
    )
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.on(signal, () => runner.kill(signal))
    const limit = setTimeout(() => runner.kill('SIGTERM'), RUN_MS_MAX)
    const [code] = await once(runner, 'exit')
    clearTimeout(limit)
    return code === 0
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Once, before anything runs: files side by side must not build into one folder. */
async function buildPages(): Promise<string | null> {
  if (process.env.TEST_PAGES) return process.env.TEST_PAGES
  const { folder, trouble } = await ensurePages(createLogger('warn', 'stderr'))
  // Old pages would pass tests that the new ones fail.
  if (trouble !== null) throw new Error(trouble)
  return folder
}
