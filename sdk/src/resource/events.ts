import type { CallOptions, Connection } from '../client/connection.ts'
import { checkItems, Pages } from '../client/pages.ts'
import { readJson, send, sendJson } from '../client/send.ts'
import { Feed, type FeedOptions } from './feed.ts'
import type { BatchResult, Event, EventFilters, EventInput, EventPage } from './types.ts'

/** The stored event of `events.create`. */
export type CreatedEvent = {
  id: string
  /** An event with this idempotency key was already stored, so this call stored nothing. */
  isReplay: boolean
  /** The stored event with this idempotency key has a different body. It was not changed. */
  isMismatch: boolean
}

/** Stores and reads events. */
export class Events {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /**
   * Stores an event. Without an `idempotencyKey`, the call generates one, so that its retries never store
   * the event twice. To be safe against a restart of your program too, pass a key of your own.
   */
  create(event: EventInput, options?: CallOptions): Promise<CreatedEvent> {
    const request = {
      method: 'POST',
      path: '/v1/events',
      body: withIdempotencyKey(event),
      retryPolicy: 'safe',
    } as const
    return send(this.#connection, request, options, async (response) => {
      const { id } = await readJson<{ id: string }>(response)
      return {
        id,
        isReplay: response.headers.get('x-idempotent-replay') === 'true',
        isMismatch: response.headers.get('x-idempotency-mismatch') === 'true',
      }
    })
  }

  /**
   * Stores up to 500 events in one request, and returns one result per event, in order. Each event is stored
   * or refused on its own. Events without an `idempotencyKey` get one, as with `create`.
   */
  async batch(events: readonly EventInput[], options?: CallOptions): Promise<BatchResult[]> {
    const body = { events: events.map(withIdempotencyKey) }
    const count = events.length
    return await sendEvents(this.#connection, { body: JSON.stringify(body), count }, options)
  }

  /** The events that match, newest first. */
  list(filters: EventFilters = {}, options?: CallOptions): Pages<Event, EventPage> {
    const { metadata = {}, ...others } = filters
    const paths = Object.entries(metadata).map(([path, value]) => [`metadata.${path}`, value])
    const query = { ...others, ...Object.fromEntries(paths) }
    const read = (cursor: string | undefined) =>
      sendJson<EventPage>(
        this.#connection,
        { method: 'GET', path: '/v1/events', query: { ...query, cursor } },
        options,
      )
    return new Pages(read, filters.cursor)
  }

  /** One event, hot or archived. */
  get(eventId: string, options?: CallOptions): Promise<Event> {
    const path = `/v1/events/${encodeURIComponent(eventId)}`
    return sendJson(this.#connection, { method: 'GET', path }, options)
  }

  /**
   * The events of a workspace in the order in which they were stored, without gaps or duplicates. With
   * `follow`, the loop waits for new events and never ends.
   */
  feed(options?: FeedOptions): Feed {
    return new Feed(this.#connection, options)
  }
}

/** Sends the JSON of a batch with `count` events, which all have idempotency keys. */
export async function sendEvents(
  connection: Connection,
  { body, count }: { body: string; count: number },
  options?: CallOptions,
): Promise<BatchResult[]> {
  const response = await sendJson<{ results: BatchResult[] }>(
    connection,
    { method: 'POST', path: '/v1/events/batch', body, retryPolicy: 'safe' },
    options,
  )
  checkItems(response?.results, count)
  return response.results
}

function withIdempotencyKey(event: EventInput): EventInput {
  return event.idempotencyKey === undefined
    ? { ...event, idempotencyKey: crypto.randomUUID() }
    : event
}
