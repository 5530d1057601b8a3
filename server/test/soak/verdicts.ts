/** What the soak test checks, in the order of the report. */
export const VERDICTS = {
  verify: '`annals verify` finds every chain intact',
  ledger: 'every acknowledged event is stored exactly once, and every stored event was sent',
  replays: 'a replayed idempotency key returns the first id',
  deliveries: 'every event reached each webhook, or is still due; repeats keep their delivery id',
  signatures: 'every delivery has a valid signature',
  exports: 'every export has the rows of its snapshot, and a rerun has the same bytes',
  queries: 'pages have no duplicates, no gaps and no event of another tenant',
  archive: '`annals archive` succeeds, and the storage holds nothing but cataloged files',
  responses: 'no response is a 5xx other than 503, and none is unexpected',
  log: 'the log has no fatal line, no failed request and nothing on standard error',
  recovery: 'the service accepts events again after each fault',
  memory: 'memory does not grow over the longest uninterrupted run',
  resources: 'descriptors, timers and database connections return to the idle level',
  shutdown: 'SIGTERM ends the service with exit code 0 within 10 s',
} as const

export type VerdictName = keyof typeof VERDICTS

export type Verdict = {
  name: VerdictName
  checks: number
  failureCount: number
  /** The first few distinct problems. */
  failures: string[]
}

const FAILURES_KEPT_MAX = 10
const FAILURE_LENGTH_MAX = 600
const TRACE_ID = /,"traceId":"[0-9a-f]+"/g

/** Collects what was checked and what failed; a failed check never stops the soak. */
export class Verdicts {
  readonly #verdicts = new Map<VerdictName, Verdict>()
  readonly #onFailure: (line: string) => void

  constructor(onFailure: (line: string) => void) {
    this.#onFailure = onFailure
  }

  check(name: VerdictName, holds: boolean, describe: () => string): boolean {
    const verdict = this.#verdicts.get(name) ?? { name, checks: 0, failureCount: 0, failures: [] }
    this.#verdicts.set(name, verdict)
    verdict.checks += 1
    if (holds) return true
    verdict.failureCount += 1
    // Remove the trace id, which would make each failure look new.
    const failure = describe().replaceAll(TRACE_ID, '').slice(0, FAILURE_LENGTH_MAX)
    const isNew = !verdict.failures.includes(failure)
    if (isNew && verdict.failures.length < FAILURES_KEPT_MAX) {
      verdict.failures.push(failure)
      this.#onFailure(`${name}: ${failure}`)
    }
    return false
  }

  get list(): Verdict[] {
    return [...this.#verdicts.values()]
  }

  get failed(): Verdict[] {
    return this.list.filter(({ failureCount }) => failureCount > 0)
  }
}
