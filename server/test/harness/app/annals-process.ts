import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

export const ANNALS = join(import.meta.dirname, '../../../../bin/annals')

export type Outcome = { code: number | null; stdout: string; stderr: string }

/**
 * Runs a command to completion, like a person at a terminal. Only the given variables and the
 * compile cache of the test run are set.
 */
export async function runAnnals(
  args: readonly string[],
  env: Record<string, string> = {},
  within: readonly string[] = [],
): Promise<Outcome> {
  const annals = new AnnalsProcess(args, env, within)
  return await annals.exited
}

/** A running `bin/annals`, its output so far and its exit. `within` is the command prefix. */
export class AnnalsProcess implements AsyncDisposable {
  readonly exited: Promise<Outcome>
  readonly #child: ChildProcess
  #stdout = ''
  #stderr = ''
  #isOver = false
  #wake: () => void = () => {}

  constructor(
    args: readonly string[],
    env: Record<string, string>,
    within: readonly string[] = [],
  ) {
    const [program = ANNALS, ...others] = [...within, ANNALS, ...args]
    const { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS } = process.env
    const child = spawn(program, others, {
      cwd: '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH, NODE_COMPILE_CACHE, NODE_OPTIONS, ...env },
    })
    this.#child = child
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
      this.#wake()
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
      this.#wake()
    })
    this.exited = once(child, 'close').then(([code]: unknown[]) => {
      this.#isOver = true
      this.#wake()
      return { code: typeof code === 'number' ? code : null, ...this.#said() }
    })
  }

  /** Waits until it has printed this. Fails if it exits first. */
  async printed(pattern: RegExp, stream: 'stdout' | 'stderr' = 'stdout'): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#said()[stream])
      if (found) return found
      assert(!this.#isOver, JSON.stringify(this.#said()))
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  get pid(): number {
    return this.#child.pid ?? assert.fail('the process was not created')
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Kills it at a random moment, unless it exits before. */
  async killWithin(msMax: number): Promise<Outcome> {
    await Promise.race([this.exited, delay(Math.random() * msMax)])
    this.signal('SIGKILL')
    return await this.exited
  }

  #said(): { stdout: string; stderr: string } {
    return { stdout: this.#stdout, stderr: this.#stderr }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) this.signal('SIGTERM')
    await this.exited
  }
}
