import { formatLocal } from '../parts/time/time.ts'
import type { SearchPatch } from './explorer-search.ts'
import { isoOf, windowText } from './time-window.ts'

/** A range of times of receipt, in the notation of the service. The end is exclusive. */
export type ReceivedRange = { receivedFrom?: string; receivedTo?: string }

/** The order of the list: by the events' own time, or by when Annals received them. */
export type Sort = 'timestamp' | 'receivedAt'

const AROUND_MS = 5 * 60_000

export function readSort(text: string | undefined): Sort {
  return text === 'receivedAt' ? text : 'timestamp'
}

/** Ignores what isn't a time. */
export function receivedRangeOf({ receivedFrom, receivedTo }: ReceivedRange): ReceivedRange {
  return {
    ...(receivedFrom !== undefined && isTime(receivedFrom) && { receivedFrom }),
    ...(receivedTo !== undefined && isTime(receivedTo) && { receivedTo }),
  }
}

function isTime(text: string): boolean {
  return !Number.isNaN(Date.parse(text))
}

export function hasReceived({ receivedFrom, receivedTo }: ReceivedRange): boolean {
  return receivedFrom !== undefined || receivedTo !== undefined
}

/** For example "Nov 18, 09:00:00 – 10:00:00" or "from Nov 18, 09:00:00". */
export function receivedText({ receivedFrom = '', receivedTo = '' }: ReceivedRange): string {
  const [fromMs, toMs] = [Date.parse(receivedFrom), Date.parse(receivedTo)]
  if (receivedFrom !== '' && receivedTo !== '') return windowText({ fromMs, toMs, range: null })
  return receivedTo === ''
    ? `from ${formatLocal(fromMs, 'clock')}`
    : `before ${formatLocal(toMs, 'clock')}`
}

export function receivedPatch(fromMs: number, toMs: number): SearchPatch {
  return { receivedFrom: isoOf(fromMs), receivedTo: isoOf(toMs) }
}

/** The events that arrived with an event, in the order of their arrival. */
export function arrivedAroundPatch(receivedMs: number): SearchPatch {
  return { ...receivedPatch(receivedMs - AROUND_MS, receivedMs + AROUND_MS), sort: 'receivedAt' }
}

export const SORT_LABELS: Record<Sort, string> = {
  timestamp: 'Sort by the time of the events',
  receivedAt: 'Sort by the time of receipt',
}

export function sortPatch(sort: Sort): SearchPatch {
  return { sort: sort === 'timestamp' ? null : sort }
}
