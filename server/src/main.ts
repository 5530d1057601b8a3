import { cacheCompiledCode } from './platform/compile-cache.ts'
import { endProcess } from './platform/end-process.ts'
import { StopSignals } from './platform/stop-signals.ts'

/** How long a finished command may take to exit by itself. */
const END_MS_MAX = 500

// The other modules take a while to load. Without a listener, a SIGTERM that arrives meanwhile would end the
// process with exit code 143.
const stopSignals = new StopSignals()
if (process.argv[2] === 'serve') stopSignals.listen()
cacheCompiledCode()
const { runCommand } = await import('./command-line.ts')
if (await runCommand({ env: process.env, stopSignals })) {
  // A file system that hangs blocks a thread, which would keep a finished command from exiting.
  setTimeout(() => endProcess(Number(process.exitCode ?? 0)), END_MS_MAX).unref()
}
