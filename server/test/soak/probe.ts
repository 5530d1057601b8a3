import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded into the service by `--import`. On SIGUSR2 it steps the service's clock to the offset in
 * the control file, collects garbage, and writes the resources of the process next to that file. The
 * monotonic clock doesn't change, as when an operator sets the time.
 */
const controlFile = process.env.SOAK_CONTROL_FILE
const machineNow = Date.now
let offsetMs = 0
setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

if (controlFile !== undefined) {
  Date.now = () => machineNow() + offsetMs
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [Date.now()] : args, newTarget),
  })
  readControl(controlFile)
  if (isMainThread) process.on('SIGUSR2', () => writeResult(controlFile))
}

function readControl(file: string): number {
  const control: { nonce: number; offsetMs: number } = JSON.parse(readFileSync(file, 'utf8'))
  offsetMs = control.offsetMs
  return control.nonce
}

function writeResult(file: string): void {
  const nonce = readControl(file)
  collectGarbage()
  const { rss, heapUsed, external } = process.memoryUsage()
  const resources: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1
  // Rename the complete file, so that the reader never sees a partial one.
  writeFileSync(`${file}.new`, JSON.stringify({ nonce, rss, heapUsed, external, resources }))
  renameSync(`${file}.new`, `${file}.result`)
}
