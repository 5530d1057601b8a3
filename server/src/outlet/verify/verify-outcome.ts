import { SegmentUnreadableError } from './verify-archive.ts'
import { TreeUnreadyError } from './verify-checkpoint.ts'
import type { ChainVerdict } from './verify-ledger.ts'
import type { Covered, VerifyStatus } from './verify-run.ts'

/** The result of a verification, with a sentence for the member. */
export type VerifyOutcome = {
  status: Exclude<VerifyStatus, 'RUNNING'>
  /** Null if the number of verified events isn't known. */
  checked: number | null
  verdict: string
  badSeq: number | null
  badEventId: string | null
  /** Only of a run that holds. */
  covered?: Covered
  /** Whether the run only waits for files of the archive, which needs no attention. */
  isRestoring?: boolean
}

export function failureOf(error: unknown): VerifyOutcome {
  if (error instanceof SegmentUnreadableError && error.isCold) return restoringFrom(error.seq)
  const verdict =
    error instanceof SegmentUnreadableError
      ? `The chain could not be verified, because the archive can't be read from event ${error.seq} on. Start the run again, or ask the operator to check the archive.`
      : error instanceof TreeUnreadyError
        ? 'The events could not be compared with what was signed, because the signed tree is being rebuilt. Start the run again in a few minutes.'
        : 'The run could not be finished because of an unexpected error. Start the run again. If it fails again, ask the operator to run annals verify.'
  return { status: 'FAILED', checked: null, verdict, badSeq: null, badEventId: null }
}

function restoringFrom(seq: number): VerifyOutcome {
  const verdict = `Waiting for restore: the archived files from event ${seq} on are in a cold storage class, and their restore was requested, which takes hours. A scheduled run repeats automatically. Start any other run again later.`
  const failed = { status: 'FAILED', checked: null, badSeq: null, badEventId: null } as const
  return { ...failed, verdict, isRestoring: true }
}

export function outcomeOf(
  verdict: ChainVerdict,
  {
    isPeriod = false,
    skipped = 0,
  }: {
    isPeriod?: boolean
    /** How many events before these were not verified. */
    skipped?: number
  } = {},
): VerifyOutcome {
  const { events } = verdict
  if (verdict.ok) {
    const sentence = isPeriod
      ? periodSentence(events)
      : skipped > 0
        ? newEventsSentence(events, skipped)
        : chainSentence(events)
    return { status: 'HOLDS', checked: events, verdict: sentence, badSeq: null, badEventId: null }
  }
  return {
    status: 'BROKEN',
    checked: events,
    verdict: `The chain is broken at event ${verdict.seq}: ${verdict.problem}.`,
    badSeq: verdict.seq,
    badEventId: verdict.id,
  }
}

function chainSentence(events: number): string {
  if (events === 0) return 'The chain is intact: it has no events yet.'
  return `All ${events.toLocaleString('en')} events are intact: ${RECOMPUTED}`
}

function newEventsSentence(events: number, skipped: number): string {
  return `The ${events.toLocaleString('en')} events after event ${skipped.toLocaleString('en')} are intact and continue the signed checkpoint. The events before them were not verified again.`
}

function periodSentence(events: number): string {
  if (events === 0) {
    return 'No events were received in this period, and none are missing: the events before and after it are consecutive.'
  }
  const subject = events === 1 ? 'The only event' : `All ${events.toLocaleString('en')} events`
  return `${subject} of this period ${events === 1 ? 'is' : 'are'} intact: ${RECOMPUTED}`
}

const RECOMPUTED = 'every hash was recomputed, and no event was changed or is missing.'

/** The chain is intact, but differs from its signed tree. */
export function treeOutcomeOf(events: number, problem: string): VerifyOutcome {
  const intact =
    events === 0
      ? 'The chain differs from what was signed'
      : `All ${events.toLocaleString('en')} events form an intact chain, but it differs from what was signed`
  const verdict = `${intact}: ${problem}.`
  return { status: 'BROKEN', checked: events, verdict, badSeq: null, badEventId: null }
}

/** The result as the metadata of an audit entry. If a chain is broken, it has the first bad event. */
export function auditedOutcome({ status, checked, verdict, badSeq, badEventId }: VerifyOutcome) {
  return {
    status,
    verdict,
    ...(checked !== null && { events: checked }),
    ...(badSeq !== null && { seq: badSeq, eventId: badEventId }),
  }
}
