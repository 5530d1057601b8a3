import { globSync } from 'node:fs'
import { chmod, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { ensurePages } from '../src/command/build-pages.ts'
import { startEngine } from '../src/platform/engine/embedded-postgres.ts'
import { createLogger } from '../src/platform/logger.ts'
import { migrate } from '../src/platform/pg/migrate.ts'
import { bundlePackages } from '../tools/bundle-packages.ts'
import { createBatches, listTaken } from './batches.ts'
import { check } from './check.ts'
import { CPU_TIME } from './cpu-time.ts'
import { EngineFolder, query } from './harness/database/engine.ts'
import { findMemoryFolder } from './memory-folder.ts'

/**
 * `npm test`: checks types, lint and format, then runs every test file against one PostgreSQL, in
 * which each file clones the migrated template. Arguments name files to run instead.
 */
const ROOT = join(import.meta.dirname, '../..')
/** server/test/unit.test.ts runs the unit tests next to the sources. */
const FILES = ['server/test/**/*.test.ts', 'dashboard/test/**/*.test.ts']
/** A file that never ends must not delay the results of all others. */
const RUN_MS_MAX = 40 * 60_000
const FILE_MS_MAX = 8 * 60_000
/** For a process that doesn't exit although each of its files kept its own timeout. */
const PROCESS_MS_MAX = 35 * 60_000
/**
 * A file runs in the first group that fits it. The groups run one after another. Most files wait about half
 * of the time, so more of them than the machine has cores run at once.
 */
const GROUPS = [
  { fits: /(^|\/)dashboard\/test\/browser\//, concurrency: 3 },
  // These measure what one client costs another, or how long the service is away or takes to stop.
  { fits: /(^|\/)server\/test\/(hostile|soak|fault|integration\/stopping)\b/, concurrency: 3 },
  { fits: /./, concurrency: 4 },
]
/** The end of the report. */
const COUNT = /^(\w+) (\d[\d.]*)$/
const NEEDS_PAGES = /(^|\/)dashboard\/test\/browser\//

const chosen = process.argv.slice(2)
const files = chosen.length > 0 ? chosen : globSync(FILES, { cwd: ROOT }).toSorted()
// While the checks run, the engine and the pages are prepared.
process.exitCode = (await runFiles(chosen.length > 0 ? Promise.resolve(true) : check())) ? 0 : 1

async function runFiles(checked: Promise<boolean>): Promise<boolean> {
  // Together in one folder, so that a run that is interrupted leaves none in memory.
  await using engines = await mkdtempDisposable(join(findMemoryFolder() ?? tmpdir(), 'annals-'))
  // Some engines run as another user.
  await chmod(engines.path, 0o711)
  process.env.TEST_ENGINES = engines.path
  await using pages = files.some((file) => NEEDS_PAGES.test(file)) ? await preparePages() : null
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-test-'))
  // Tests that run programs as another user load the bundles too.
  await chmod(folder.path, 0o755)
  await using prepared = await prepareData()
  await using data = new EngineFolder()
  data.copy(prepared.dataDir)
  await using engine = await start(data)
  Object.assign(process.env, {
    // Most of a file's startup is compiling the program, which is the same for all files.
    NODE_COMPILE_CACHE: join(folder.path, 'compiled'),
    NODE_OPTIONS: `--import ${await bundlePackages(join(folder.path, 'bundles'))}`,
    TEST_CONNECTION: JSON.stringify(engine.connection),
    TEST_DATA: prepared.dataDir,
    ...pages?.env,
  })
  return (await checked) && (await runGroups(folder.path))
}

/** The data folder of a stopped engine with a migrated database, which tests copy. */
async function prepareData(): Promise<EngineFolder> {
  const folder = new EngineFolder()
  await using engine = await start(folder)
  const { connection } = engine
  await migrate({ connection, logger: createLogger('silent') })
  // The password stays the same. By default, a client hashes it 4,096 times for each connection.
  const { user, password } = connection
  await query(connection, `set scram_iterations = 1; alter role ${user} password '${password}'`)
  return folder
}

function start({ dataDir }: EngineFolder) {
  // Nothing here survives a crash. Durability tests start their own server.
  const settings = { max_connections: '300', fsync: 'off', full_page_writes: 'off' }
  return startEngine({ dataDir, exclusive: false, settings })
}

/** All groups, in one report. */
async function runGroups(folder: string): Promise<boolean> {
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stopped.abort())
  }
  const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(RUN_MS_MAX)])
  const groupOf = (file: string) => GROUPS.find(({ fits }) => fits.test(file))
  let isSuccess = true
  async function* report() {
    const counts = new Map<string, number>()
    const durations: { file: string; seconds: number }[] = []
    const cpuSeconds = new Map<string, number>()
    const summaries: TestEvent[] = []
    for (const group of GROUPS) {
      const { concurrency } = group
      const chosenFiles = files.filter((file) => groupOf(file) === group)
      if (chosenFiles.length === 0) continue
      const batching = { root: ROOT, folder, concurrency, fileMsMax: FILE_MS_MAX }
      const entries = createBatches(chosenFiles, batching)
      const options = { files: entries, concurrency, cwd: ROOT, timeout: PROCESS_MS_MAX, signal }
      for await (const event of run(options)) {
        const cpu = event.type === 'test:diagnostic' ? CPU_TIME.exec(event.data.message) : null
        if (cpu?.[2]) {
          cpuSeconds.set(cpu[2], Number(cpu[1]))
          continue
        }
        if (event.type === 'test:fail') isSuccess = false
        if (event.type === 'test:complete' && chosenFiles.includes(event.data.name)) {
          durations.push({ file: event.data.name, seconds: event.data.details.duration_ms / 1_000 })
        }
        const count = event.type === 'test:diagnostic' ? COUNT.exec(event.data.message) : null
        if (count?.[1]) counts.set(count[1], (counts.get(count[1]) ?? 0) + Number(count[2]))
        else if (event.type === 'test:summary') {
          if (event.data.file === undefined) summaries.push(event)
        } else yield event
      }
      // A process that crashed leaves its other files to the rest, which may be too few for them.
      const ended = new Set(durations.map(({ file }) => file))
      for (const file of chosenFiles.filter((name) => !ended.has(name))) {
        isSuccess = false
        yield { type: 'test:diagnostic', data: { message: `DID NOT RUN: ${file}`, nesting: 0 } }
      }
    }
    for (const [name, count] of counts) {
      yield { type: 'test:diagnostic', data: { message: `${name} ${count}`, nesting: 0 } }
    }
    for (const { file, seconds } of durations
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, 10)) {
      const cpu = cpuSeconds.get(file)?.toFixed(1) ?? '?'
      const message = `${seconds.toFixed(1)} s, ${cpu} s of CPU time: ${file}`
      yield { type: 'test:diagnostic', data: { message, nesting: 0 } }
    }
    // A file can fail because of what ran before it in the same process.
    for (const taken of isSuccess ? [] : listTaken(folder)) {
      const message = `One process ran ${taken.join(', ')}`
      yield { type: 'test:diagnostic', data: { message, nesting: 0 } }
    }
    // Makes the reporter list the failed tests.
    yield* summaries.slice(-1)
  }
  await pipeline(Readable.from(report()), new spec(), process.stdout, { end: false })
  return isSuccess
}

/** The built pages and a browser for them, once for all files. */
async function preparePages(): Promise<AsyncDisposable & { env: Record<string, string> }> {
  const folder = await buildPages()
  const { startSharedBrowser } = await import('../../dashboard/test/browser/browser.ts')
  const browser = await startSharedBrowser()
  return {
    env: { TEST_PAGES: folder, TEST_BROWSER: browser?.url ?? '' },
    [Symbol.asyncDispose]: async () => await browser?.[Symbol.asyncDispose](),
  }
}

/** Once, before anything runs, because parallel files must not build into one folder. */
async function buildPages(): Promise<string> {
  if (process.env.TEST_PAGES) return process.env.TEST_PAGES
  const { folder, warning } = await ensurePages(createLogger('warn', 'stderr'))
  // Old pages could pass tests that the new ones fail.
  if (folder === null || warning !== null) throw new Error(warning ?? 'there are no pages')
  return folder
}
