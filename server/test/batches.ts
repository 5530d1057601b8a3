import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { MessageChannel } from 'node:worker_threads'
import { reportCpuTime } from './cpu-time.ts'
import { processScope } from './harness/app/process-scope.ts'

type Batch = {
  files: readonly string[]
  /** How many of the files this process may run. */
  sizeMax: number
  root: string
  /** Where processes mark the files that they run. */
  folder: string
  fileMsMax: number
}

/** A process that ran more would use more memory than it saves CPU time. */
const BATCH_SIZE_MAX = 12
const TAKEN = '.taken'
/** They measure their process: the CPU time of a request with its garbage, and timers left behind. */
const ALONE = /\/(large-events|feed-waiting|webhook-(names|sender))\.test\.ts$/
/** These start first, so that no process is left with one of them when the others have ended. */
const LONG = [
  /\/(soak|command-line|stopping|embedded-postgres[^/]*|export-(archived|killed)|archive)\.test\.ts$/,
  /\/(dashboard-login|export-download|writer-recovery|sign-in-flood|main-thread|every-route)\.test\.ts$/,
  /\/((aborted|connection|response)-[^/]*|pages-of-[^/]*|missing-data|contract|unit)\.test\.ts$/,
  /\/fault\//,
]

/**
 * Creates the files that the test runner starts, one per process. Loading the program takes about a second
 * of CPU time per process, and its code is slow until V8 has optimized it, so a process runs many test files.
 * Each process takes the next file when it has finished one, so all are busy until the end.
 */
export function createBatches(
  files: readonly string[],
  { concurrency, folder, ...options }: Omit<Batch, 'files' | 'sizeMax'> & { concurrency: number },
): string[] {
  const [alone = [], shared = []] = [true, false].map((isAlone) =>
    files.filter((file) => ALONE.test(file) === isAlone),
  )
  const rounds = Math.ceil(shared.length / (concurrency * BATCH_SIZE_MAX))
  const count = Math.min(shared.length, rounds * concurrency)
  const batches = [
    ...alone.map((file) => ({ files: [file], sizeMax: 1 })),
    ...Array.from({ length: count }, () => ({
      files: longFirst(shared),
      sizeMax: BATCH_SIZE_MAX,
    })),
  ]
  const [scope, program] = ['test-scope.ts', 'batches.ts'].map((name) =>
    JSON.stringify(pathToFileURL(join(import.meta.dirname, name)).href),
  )
  return batches.map((batch, nth) => {
    const path = join(folder, `batch-${nth}.test.mjs`)
    const text = [
      `await import(${scope})`,
      `const { runBatch } = await import(${program})`,
      `await runBatch(${JSON.stringify({ ...options, folder, ...batch } satisfies Batch)})`,
    ]
    writeFileSync(path, `${text.join('\n')}\n`)
    return path
  })
}

function longFirst(files: readonly string[]): string[] {
  const rankOf = (file: string) => {
    const rank = LONG.findIndex((pattern) => pattern.test(file))
    return rank < 0 ? LONG.length : rank
  }
  return files.toSorted((a, b) => rankOf(a) - rankOf(b))
}

/** Runs the files that no other process has taken. Each is a test, with its own hooks and timeout. */
export async function runBatch({ files, sizeMax, root, folder, fileMsMax }: Batch): Promise<void> {
  await using _ = processScope
  let count = 0
  for (const file of files) {
    if (count === sizeMax) return
    if (!take(file, folder, count)) continue
    count += 1
    const startedMs = performance.now()
    // A test that waits only for timers that don't keep the process running would be canceled. Not a timer,
    // because tests count those.
    const { port1: keepRunning } = new MessageChannel()
    keepRunning.ref()
    await test(file, { timeout: fileMsMax }, (t) => {
      reportCpuTime(t)
      return import(pathToFileURL(resolve(root, file)).href)
    })
    keepRunning.close()
    // Whatever hangs would run beside the next files.
    if (performance.now() - startedMs >= fileMsMax) return
  }
}

/** The files that each process ran, in order. */
export function listTaken(folder: string): string[][] {
  const taken = readdirSync(folder)
    .filter((name) => name.endsWith(TAKEN))
    .map((name) => {
      const [pid, nth] = readFileSync(join(folder, name), 'utf8').split(' ')
      return { pid, nth: Number(nth), file: name.slice(0, -TAKEN.length).replaceAll('+', '/') }
    })
  return [...Map.groupBy(taken, ({ pid }) => pid).values()].map((ofProcess) =>
    ofProcess.toSorted((a, b) => a.nth - b.nth).map(({ file }) => file),
  )
}

/** False if another process was first. */
function take(file: string, folder: string, nth: number): boolean {
  try {
    const path = join(folder, `${file.replaceAll('/', '+')}${TAKEN}`)
    writeFileSync(path, `${process.pid} ${nth}`, { flag: 'wx' })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
