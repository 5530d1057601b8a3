import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { ANNALS } from './annals-process.ts'

const PAUSE = '\x13'

/**
 * Why the tests that need a terminal can't run here, or false if they can. Node itself can't open
 * one.
 */
export function terminalSkipReason(): string | false {
  try {
    const version = execFileSync('script', ['--version'], { encoding: 'utf8', stdio: 'pipe' })
    if (version.includes('util-linux')) return false
  } catch {
    // Not installed, or another program of that name.
  }
  return 'opening a terminal needs script of util-linux'
}

/** `bin/annals` in its own terminal, whose output Ctrl-S pauses. */
export class Terminal implements AsyncDisposable {
  /** The exit code of `bin/annals`. */
  readonly exited: Promise<number | null>
  readonly #script: ChildProcess
  readonly #type: (text: string) => void
  #screen = ''

  constructor(args: readonly string[], env: Record<string, string>) {
    const { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
    // `exec` keeps the process id, so that signals reach the service.
    const command = `echo "pid $$"; exec '${ANNALS}' ${args.join(' ')}`
    const script = spawn('script', ['-q', '-e', '-c', command, '/dev/null'], {
      cwd: '/',
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS, SHELL: '/bin/sh', ...env },
    })
    script.stdout.setEncoding('utf8').on('data', (text: string) => (this.#screen += text))
    this.#script = script
    this.#type = (text) => void script.stdin.write(text)
    this.exited = once(script, 'close').then(([code]: unknown[]) =>
      typeof code === 'number' ? code : null,
    )
  }

  /** The output so far. */
  get screen(): string {
    return this.#screen
  }

  /** Pauses the output of the terminal. */
  pause(): void {
    this.#type(PAUSE)
  }

  /** Does nothing once the process has ended. */
  signal(name: NodeJS.Signals): void {
    if (this.#script.exitCode !== null) return
    process.kill(Number(/pid (\d+)/.exec(this.#screen)?.[1]), name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#script.exitCode !== null) return
    this.signal('SIGKILL')
    await this.exited
  }
}
