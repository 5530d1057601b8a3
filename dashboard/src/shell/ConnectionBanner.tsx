import { useEffect, useSyncExternalStore } from 'react'
import { readConnection, subscribeConnection, watchConnection } from '../api/connection.ts'
import { Icon } from '../parts/Icon.tsx'
import { formatLocal } from '../parts/time/time.ts'
import classes from './ConnectionBanner.module.css'

/** Tells that the service doesn't respond, and takes the color out of the page, which may be out of date. */
export function ConnectionBanner() {
  useEffect(watchConnection, [])
  const { lostAtMs, isOffline } = useSyncExternalStore(subscribeConnection, readConnection)
  return (
    <div aria-live="polite">
      {lostAtMs !== null && (
        <>
          <div className={classes.stale} />
          <p className={classes.banner}>
            <Icon name="alert" />
            <span>
              {isOffline ? 'You’re offline' : 'The service isn’t responding'}. This page may be out
              of date since {formatLocal(lostAtMs, 'clock')}. Reconnecting…
            </span>
          </p>
        </>
      )}
    </div>
  )
}
