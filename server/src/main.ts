import { cacheCompiledCode } from './platform/compile-cache.ts'
import { StopSignals } from './platform/stop-signals.ts'

// The other modules take a while to load. Without a listener, a SIGTERM that arrives meanwhile would end the
// process with exit code 143.
const stopSignals = new StopSignals()
if (process.argv[2] === 'serve') stopSignals.listen()
cacheCompiledCode()
const { runCommand } = await import('./command-line.ts')
await runCommand({ env: process.env, stopSignals })
