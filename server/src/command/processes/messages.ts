/** What an API process needs to start, in addition to the environment. */
export type ProcessStart = {
  /** From 1 on. A process that replaces another one has the same number. */
  number: number
  port: number
  pagesFolder: string | null
}

/** From the supervisor to an API process. */
export type ProcessRequest =
  ({ kind: 'start' } & ProcessStart) | { kind: 'read-metrics'; id: number }

/** From an API process to its supervisor. */
export type ProcessReport =
  | { kind: 'started'; url: string }
  /** The sentence of an `OperatorError` that ended the start. */
  | { kind: 'failed'; sentence: string }
  | { kind: 'metrics'; id: number; text: string }
