import { flushCompileCache } from 'node:module'
import { cacheCompiledCode } from './platform/compile-cache.ts'
import { endProcess } from './platform/end-process.ts'
import { loadBundles } from './platform/load-bundles.ts'
import { StopSignals } from './platform/stop-signals.ts'

/** How long a finished command may take to exit by itself. */
const END_MS_MAX = 500

// The other modules take a while to load. Without a listener, a SIGTERM that arrives meanwhile would end the
// process with exit code 143.
const stopSignals = new StopSignals()
const isService = process.argv[2] === 'serve'
if (isService) stopSignals.listen()
cacheCompiledCode()
await loadBundles()
const { runCommand } = await import('./command-line.ts')
if (await runCommand({ env: process.env, stopSignals })) {
  if (isService) {
    // Node closes what is left of connections when it exits, and was seen to wait for that forever after a flood.
    process.once('beforeExit', (code) => {
      flushCompileCache()
      endProcess(code)
    })
  }
  // A file system that hangs blocks a thread, which would keep a finished command from exiting.
  setTimeout(() => endProcess(Number(process.exitCode ?? 0)), END_MS_MAX).unref()
}
