import { useSyncExternalStore } from 'react'

/** The IANA name of the browser's time zone. */
export const LOCAL_TIME_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

const KEY = 'annals.time-zone'
const UTC = 'UTC'

let shown = readStored() === UTC ? UTC : LOCAL_TIME_ZONE
const listeners = new Set<() => void>()

/** The time zone that times are shown in: the browser's, or UTC if the member chose it. */
export function shownTimeZone(): string {
  return shown
}

/** Like `shownTimeZone`, for components: renders them again when the member changes the time zone. */
export function useTimeZone(): string {
  return useSyncExternalStore(subscribe, shownTimeZone)
}

/** The browser remembers the choice. */
export function showUtc(isUtc: boolean): void {
  shown = isUtc ? UTC : LOCAL_TIME_ZONE
  try {
    if (isUtc) localStorage.setItem(KEY, UTC)
    else localStorage.removeItem(KEY)
  } catch {
    // Storage is blocked. The choice applies until the page is closed.
  }
  for (const listener of listeners) listener()
}

/** For example "Berlin". Fixed offsets, such as "Etc/GMT+5", have no place. */
export function shortZoneName(zone: string): string {
  const place = zone.slice(zone.lastIndexOf('/') + 1).replaceAll('_', ' ')
  return zone.startsWith('Etc/') ? zone : place
}

/** A column's label with the time zone of its times, for example "Created (Berlin)". */
export function useZonedLabel(label: string): string {
  return `${label} (${shortZoneName(useTimeZone())})`
}

/** How far the clocks shown are ahead of UTC. */
export function zoneOffsetMs(atMs: number): number {
  return shown === UTC ? 0 : new Date(atMs).getTimezoneOffset() * -60_000
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function readStored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null // Storage is blocked.
  }
}
