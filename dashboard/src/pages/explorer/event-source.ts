import { parseJson } from '../../../../sdk/src/client/parse-json.ts'
import { checkConnection } from '../../api/connection.ts'
import { queryClient } from '../../api/query-client.ts'
import { SESSION_KEY } from '../../api/session.ts'
import type { ExplorerEvent } from './explorer-event.ts'
import type { Filters } from '../../query/filters.ts'
import { queryFilters } from '../../query/metadata.ts'

const RETRY_MS_MIN = 2_000
const RETRY_MS_MAX = 30_000

/** `lost` means that the service doesn't respond and the stream keeps retrying. */
export type LiveState = 'connecting' | 'following' | 'lost'

type Follower = {
  onEvent: (event: ExplorerEvent) => void
  /** The stream starts or has skipped events, so the list must be reloaded. */
  onGap: () => void
  onState: (state: LiveState) => void
}

/**
 * Follows new events until the returned function is called. The browser itself resumes a broken stream.
 * If the service refuses the stream, this function retries with exponential backoff.
 */
export function followEvents(filters: Filters, follower: Follower): () => void {
  let source: EventSource | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let retryMs = RETRY_MS_MIN

  const open = () => {
    let isNew = true
    source = new EventSource(addressOf(filters))
    source.addEventListener('open', () => {
      follower.onState('following')
      retryMs = RETRY_MS_MIN
      if (isNew) follower.onGap()
      isNew = false
    })
    source.addEventListener('event', ({ data }: MessageEvent<string>) => {
      const event = parseJson(data) as ExplorerEvent // Sent by our own service.
      // The stream can't filter by trace.
      const { traceId } = filters
      if (traceId === undefined || traceId.toLowerCase() === event.traceId) follower.onEvent(event)
    })
    source.addEventListener('gap', follower.onGap)
    source.addEventListener('end', openLater)
    source.addEventListener('error', () => {
      follower.onState('lost')
      void checkConnection()
      if (source?.readyState === EventSource.CLOSED) openLater()
    })
  }
  const openLater = () => {
    source?.close()
    clearTimeout(timer)
    timer = setTimeout(open, retryMs)
    retryMs = Math.min(RETRY_MS_MAX, retryMs * 2)
    // A stream doesn't say why it was refused. Reading the session shows whether it has ended.
    void queryClient.invalidateQueries({ queryKey: SESSION_KEY })
  }

  open()
  return () => {
    source?.close()
    clearTimeout(timer)
  }
}

function addressOf({ traceId: _traceId, ...filters }: Filters): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(queryFilters(filters))) {
    for (const one of [value].flat()) parameters.append(name, one)
  }
  return `/dashboard/events/live?${parameters.toString()}`
}
