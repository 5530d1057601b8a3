import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { reportCpuTime } from './cpu-time.ts'

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
export const BATCH_SIZE_MAX = 12
/** They measure their process: the CPU time of a request with its garbage, and timers left behind. */
const ALONE = /\/(large-events|webhook-(names|sender))\.test\.ts$/
/** These start first, so that no process is left with one of them when the others have ended. */
const LONG = [
  /\/(command-line|stopping|embedded-postgres[^/]*|export-(archived|killed)|archive)\.test\.ts$/,
  /\/(dashboard-login|export-download|writer-recovery|sign-in-flood|response-flood)\.test\.ts$/,
  /\/(main-thread|pages-of-[^/]*|missing-data|contract|unit)\.test\.ts$/,
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
  const program = pathToFileURL(import.meta.filename).href
  return batches.map((batch, nth) => {
    const path = join(folder, `batch-${nth}.test.mjs`)
    const text = [
      `import { runBatch } from ${JSON.stringify(program)}`,
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
  let count = 0
  for (const file of files) {
    if (count === sizeMax) return
    if (!take(join(folder, `${file.replaceAll('/', '+')}.taken`))) continue
    count += 1
    // A test that waits only for timers that don't keep the process running would be canceled.
    const keepRunning = setInterval(() => {}, fileMsMax)
    await test(file, { timeout: fileMsMax }, (t) => {
      reportCpuTime(t)
      return import(pathToFileURL(resolve(root, file)).href)
    })
    clearInterval(keepRunning)
  }
}

/** False if another process was first. */
function take(path: string): boolean {
  try {
    writeFileSync(path, '', { flag: 'wx' })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
