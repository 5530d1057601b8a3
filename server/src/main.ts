import { StopSignals } from './platform/stop-signals.ts'

// Before everything else, which takes a while to load: a signal that arrives meanwhile would otherwise end
// the process with exit code 143.
const stopSignals = new StopSignals()
if (process.argv[2] === 'serve') stopSignals.listen()
const { runCommand } = await import('./command-line.ts')
await runCommand({ env: process.env, stopSignals })
