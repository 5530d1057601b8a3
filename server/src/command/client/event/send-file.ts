import { hash, randomUUID } from 'node:crypto'
import type { BatchResult, EventInput } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import type { Column } from '../../output/table.ts'
import { findSeqs } from './find-seqs.ts'
import { type NumberedEvent, readInput } from './read-input.ts'
import type { ClientCommand } from '../run-client.ts'

/** What the service accepts per request: 500 events and 4 MiB. */
const BATCH_EVENTS_MAX = 500
const BATCH_BYTES_MAX = 3 * 1_024 * 1_024

export const CONFLICT =
  'Another event already has this idempotency key. Send this event with another key.'

type SentEvent = {
  line: number
  result: 'stored' | 'already stored' | 'conflict' | 'refused'
  seq: number | null
  id: string | null
  error: string | null
}

const COLUMNS: readonly Column<SentEvent>[] = [
  { title: 'LINE', value: ({ line }) => line, isRight: true, isWhole: true },
  { title: 'RESULT', value: ({ result }) => result, isWhole: true, widthMin: 14 },
  { title: 'SEQ', value: ({ seq }) => seq, isRight: true, isWhole: true, widthMin: 6 },
  { title: 'ID', value: ({ id }) => id, isWhole: true, widthMin: 36 },
  { title: 'ERROR', value: ({ error }) => error },
]

/** Stores the events of a file in batches, and prints the result of each event. */
export async function sendFile(
  { annals, output, signal }: ClientCommand,
  path: string,
  idempotencyKey: string | undefined,
): Promise<void> {
  const keys = new IdempotencyKeys(path, idempotencyKey)
  const print = output.rows(COLUMNS)
  const counts = { stored: 0, 'already stored': 0, conflict: 0, refused: 0 }
  let isStarted = false
  try {
    for await (const batch of inBatches(readInput(path, signal), keys)) {
      isStarted = true
      const events = batch.map(({ event }) => event)
      const results = await annals.events.batch(events, { signal })
      const stored = results.flatMap((result) => ('id' in result ? [result.id] : []))
      const seqs = await findSeqs(annals, stored, signal)
      const sent = results.map((result, nth) => toSent(batch[nth]?.line ?? 0, result, seqs))
      for (const { result } of sent) counts[result] += 1
      await print(sent)
    }
  } catch (error) {
    if (isStarted && !output.isClosed) output.note(`annals: ${keys.howToContinue}`)
    throw error
  }
  if (!isStarted) throw new OperatorError('The input contains no events.')
  if (counts['already stored'] > 0) output.note(`annals: ${keys.whyNotStored}`)
  const failed = counts.refused + counts.conflict
  if (failed > 0) {
    const total = counts.stored + counts['already stored'] + failed
    throw new OperatorError(
      `Not stored: ${failed} of ${total} events. Correct them, and send them again.`,
    )
  }
}

/** Ensures that events are not stored twice when the command runs again after an error. */
class IdempotencyKeys {
  readonly #isFile: boolean
  readonly #isGiven: boolean
  readonly #prefix: string
  readonly #uses = new Map<string, number>()
  #events = 0
  #needsPrefix = false

  constructor(path: string, given: string | undefined) {
    this.#isGiven = given !== undefined
    this.#isFile = path !== '-'
    this.#prefix = given ?? randomUUID()
  }

  /**
   * An event keeps a key of its own. Of events in a file, those with a timestamp are the same event when they are sent
   * again. Others can be new: without a timestamp, an event happens when it is sent.
   */
  addTo(event: EventInput): EventInput {
    this.#events += 1
    if (event.idempotencyKey !== undefined) return event
    if (this.#isFile && event.timestamp !== undefined) {
      return { ...event, idempotencyKey: this.#contentKey(event) }
    }
    this.#needsPrefix = true
    return { ...event, idempotencyKey: `${this.#prefix}-${this.#events}` }
  }

  /** Two equal lines of a file are two events. */
  #contentKey(event: EventInput): string {
    const content = hash('sha256', JSON.stringify(event))
    const use = (this.#uses.get(content) ?? 0) + 1
    this.#uses.set(content, use)
    return `${content}-${use}`
  }

  get howToContinue(): string {
    const isComplete = this.#isGiven || !this.#needsPrefix
    const command = isComplete ? '' : ` with --idempotency-key ${this.#prefix}`
    return `Not all events were sent. To send the rest without duplicates, run the same command again${command}.`
  }

  get whyNotStored(): string {
    return 'Some events were already stored, and were not stored again.'
  }
}

async function* inBatches(
  events: AsyncIterable<NumberedEvent>,
  keys: IdempotencyKeys,
): AsyncGenerator<NumberedEvent[], void, undefined> {
  let batch: NumberedEvent[] = []
  let bytes = 0
  for await (const { event, line } of events) {
    const keyed = keys.addTo(event)
    const eventBytes = Buffer.byteLength(JSON.stringify(keyed))
    const isFull = batch.length === BATCH_EVENTS_MAX || bytes + eventBytes > BATCH_BYTES_MAX
    if (isFull && batch.length > 0) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push({ event: keyed, line })
    bytes += eventBytes
  }
  if (batch.length > 0) yield batch
}

function toSent(line: number, result: BatchResult, seqs: Map<string, number>): SentEvent {
  if (!('id' in result)) {
    const details = result.details?.map(({ path, message }) => `${path.slice(1)} ${message}`) ?? []
    const error = details.join('; ') || result.error
    return { line, result: 'refused', seq: null, id: null, error }
  }
  const { id, status } = result
  const stored = { line, seq: seqs.get(id) ?? null, id }
  if (result.mismatch) return { ...stored, result: 'conflict', error: CONFLICT }
  return { ...stored, result: status === 201 ? 'stored' : 'already stored', error: null }
}
