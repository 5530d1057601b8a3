import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { on, once } from 'node:events'
import { runCommand } from '../../../src/command-line.ts'
import { StopSignals } from '../../../src/platform/stop-signals.ts'
import type { Outcome } from './annals-process.ts'
import { processScope } from './process-scope.ts'

type Request = { args: readonly string[]; env: Record<string, string> }

/** `isLast` if the command ended the process, as wrong arguments do. */
type Answer = Outcome & { isLast: boolean }

type Host = { child: ChildProcess; exited: Promise<void> }

let host: Host | null = null
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command like `runAnnals`, but all in one process, one after another: most of a command's CPU time is
 * loading the program. For tests that are not about the process, its signals or its exit, nor about log lines, which
 * the outcome doesn't contain.
 */
export async function runCommandInHost(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const outcome = last.then(() => send({ args, env }))
  last = outcome.catch(() => {})
  return await outcome
}

async function send(request: Request): Promise<Outcome> {
  const { child, exited } = (host ??= startHost())
  const answered = once(child, 'message')
  child.send(request)
  const [answer]: Answer[] = await Promise.race([answered, exited.then(() => [])])
  assert(answer, 'the process that runs the commands exited without an answer')
  const { isLast, ...outcome } = answer
  if (isLast) {
    host = null
    await exited
  }
  return outcome
}

function startHost(): Host {
  const { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
  const child = fork(import.meta.filename, {
    cwd: '/',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning'],
    env: { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS },
  })
  const exited = once(child, 'exit').then(() => {})
  processScope.defer(async () => {
    if (child.connected) child.disconnect()
    await exited
  })
  return { child, exited }
}

/** What the streams of this process print until `stop` is called, which returns it. */
function capture(stream: NodeJS.WriteStream): { stop: () => string } {
  const write = stream.write.bind(stream)
  let text = ''
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    text += String(chunk)
    const done = rest.find((each) => typeof each === 'function')
    done?.()
    return true
  }
  return {
    stop: () => {
      stream.write = write
      stream.removeAllListeners('error')
      return text
    },
  }
}

const OWN_ENV = process.env

async function runHere({ args, env }: Request): Promise<Answer> {
  // The S3 client reads its credentials here.
  process.env = { ...OWN_ENV, ...env }
  process.argv.splice(2, Infinity, ...args)
  const [stdout, stderr] = [capture(process.stdout), capture(process.stderr)]
  const answerAt = (code: number, isLast: boolean): Answer => {
    return { code, stdout: stdout.stop(), stderr: stderr.stop(), isLast }
  }
  const onExit = (code: number) => void process.send?.(answerAt(code, true))
  process.once('exit', onExit)
  await runCommand({ env, stopSignals: new StopSignals() })
  process.off('exit', onExit)
  const code = Number(process.exitCode ?? 0)
  // The next command starts without them.
  process.exitCode = undefined
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.removeAllListeners(signal)
  return answerAt(code, false)
}

if (import.meta.main) {
  for await (const [request] of on(process, 'message', { close: ['disconnect'] })) {
    process.send?.(await runHere(request))
  }
}
