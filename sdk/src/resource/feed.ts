import type { CallOptions, Connection } from '../client/connection.ts'
import { AnnalsError } from '../client/errors.ts'
import { checkItems, repeatedCursor } from '../client/pages.ts'
import { sendJson } from '../client/send.ts'
import type { Event, FeedPage, KeyStatus } from './types.ts'

export type FeedOptions = CallOptions & {
  /** Default: the workspace of the key. Required with a company key. */
  workspaceId?: string
  /** The `seq` of the last event that you have. Default: 0, which starts at the first event. */
  after?: number
  /** Events per page, up to 1,000, which is the default. */
  limit?: number
  /** Waits for new events at the end of the chain instead of ending. Default: false. */
  follow?: boolean
  /** With `follow`: how long one request waits for events, up to 30 seconds, which is the default. */
  waitSeconds?: number
}

/**
 * The events of a chain in order. Each loop starts at `after`.
 *
 * ```ts
 * for await (const { data, next } of annals.events.feed({ after, follow: true }).pages()) {
 *   await save(data, next) // in one transaction, so that a crash neither loses an event nor repeats one
 * }
 * ```
 */
export class Feed implements AsyncIterable<Event> {
  readonly #connection: Connection
  readonly #options: FeedOptions

  constructor(connection: Connection, options: FeedOptions = {}) {
    this.#connection = connection
    this.#options = options
  }

  /** Pages with at least one event, each with the `next` to continue after it. */
  async *pages(): AsyncGenerator<FeedPage, void, undefined> {
    const { limit = 1_000, follow = false, waitSeconds = 30, ...call } = this.#options
    const path = `/v1/workspaces/${encodeURIComponent(await this.#workspaceId())}/feed`
    const timeoutMs = call.timeoutMs ?? this.#connection.timeoutMs
    let after = call.after ?? 0
    for (;;) {
      const page: FeedPage = await sendJson(
        this.#connection,
        { method: 'GET', path, query: { after, limit, waitSeconds: follow ? waitSeconds : 0 } },
        { ...call, timeoutMs: timeoutMs + (follow ? waitSeconds * 1_000 : 0) },
      )
      checkItems(page?.data)
      if (page.data.length > 0) yield page
      else if (!follow) return
      // Only an empty page can end where it started.
      if (!(page.next >= after + Math.min(page.data.length, 1))) throw repeatedCursor('next')
      after = page.next
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    for await (const { data } of this.pages()) yield* data
  }

  async #workspaceId(): Promise<string> {
    if (this.#options.workspaceId !== undefined) return this.#options.workspaceId
    const { workspaceId } = await sendJson<KeyStatus>(
      this.#connection,
      { method: 'GET', path: '/v1/keys/status' },
      this.#options,
    )
    if (workspaceId !== null) return workspaceId
    throw new AnnalsError('A company key can follow several workspaces. Pass a workspaceId.', {
      code: 'workspace_required',
    })
  }
}
