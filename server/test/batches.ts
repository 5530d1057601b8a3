import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

type BatchOptions = {
  root: string
  /** Where the files that start a batch are created. */
  folder: string
  concurrency: number
  fileMsMax: number
}

export const BATCH_SIZE_MAX = 6
/** How many files share a process. All others have one to themselves. */
const SIZES = [
  // They measure their process: the CPU time of a request with its garbage, and timers left behind.
  { fits: /\/(large-events|webhook-(names|sender))\.test\.ts$/, size: 1 },
  // Long, but only because of the processes that they start.
  { fits: /\/(command-|embedded-postgres|stopping)[^/]*$/, size: 1 },
  { fits: /(^|\/)server\/test\/integration\//, size: BATCH_SIZE_MAX },
  { fits: /(^|\/)dashboard\/test\/browser\//, size: 4 },
  { fits: /(^|\/)dashboard\/test\//, size: BATCH_SIZE_MAX },
  { fits: /(^|\/)server\/test\/fault\//, size: 3 },
]

/**
 * Creates the files that the test runner starts, one per process, with those of a single test file first.
 * Loading the program takes over a second of CPU time per process, and its code is slow until V8 has
 * optimized it, so most files share a process. Each is a test there, with its own hooks and timeout.
 */
export function createBatches(files: readonly string[], options: BatchOptions): string[] {
  const sizeOf = (file: string) => SIZES.find(({ fits }) => fits.test(file))?.size ?? 1
  const sizes = [...new Set(files.map(sizeOf))].toSorted((a, b) => a - b)
  return sizes.flatMap((size) => {
    const alike = files.filter((file) => sizeOf(file) === size)
    const count = Math.max(
      Math.ceil(alike.length / size),
      Math.min(alike.length, options.concurrency),
    )
    return Array.from({ length: count }, (_, nth) => {
      // Consecutive files are often equally slow, so they go to different batches.
      const batch = alike.filter((_file, index) => index % count === nth)
      return createEntry(batch, `batch-${size}-${nth}.test.mjs`, options)
    })
  })
}

function createEntry(
  files: readonly string[],
  name: string,
  { root, folder, fileMsMax }: BatchOptions,
): string {
  const measure = pathToFileURL(join(import.meta.dirname, 'cpu-time.ts')).href
  const lines = files.map((file) => {
    const url = pathToFileURL(resolve(root, file)).href
    const options = `{ timeout: ${fileMsMax} }`
    const body = `(t) => (reportCpuTime(t), import(${JSON.stringify(url)}))`
    return `test(${JSON.stringify(file)}, ${options}, ${body})`
  })
  const imports = [
    "import { test } from 'node:test'",
    `import { reportCpuTime } from ${JSON.stringify(measure)}`,
  ]
  const path = join(folder, name)
  writeFileSync(path, [...imports, ...lines, ''].join('\n'))
  return path
}
