import { endProcess } from './end-process.ts'

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
export type StopSignal = (typeof STOP_SIGNALS)[number]

/** Ctrl+C in a terminal reaches the service directly, and again through npm, which forwards it. */
const SAME_SIGNAL_MS = 2_000

/**
 * Handles SIGTERM, SIGINT and SIGHUP. After `listen` and before `onStop` there is nothing to stop yet, so
 * a signal ends the process with exit code 0.
 *
 * While the process stops, further signals are ignored: supervisors repeat SIGTERM, and the stop has a
 * time limit. Only a later Ctrl+C (SIGINT) ends the process immediately, for a person who won't wait.
 */
export class StopSignals {
  #stop: (signal: StopSignal) => void = () => endProcess(0)
  #isListening = false
  #stoppedAtMs: number | null = null

  listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.#handle(signal))
  }

  /** Sets the action for the first signal. */
  onStop(stop: (signal: StopSignal) => void): void {
    this.#stop = stop
    this.listen()
  }

  #handle(signal: StopSignal): void {
    const nowMs = performance.now()
    if (this.#stoppedAtMs === null) {
      this.#stoppedAtMs = nowMs
      this.#stop(signal)
    } else if (signal === 'SIGINT' && nowMs - this.#stoppedAtMs > SAME_SIGNAL_MS) {
      endProcess(1)
    }
  }
}
