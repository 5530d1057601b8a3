import { VisuallyHidden } from '@mantine/core'
import type { CSSProperties } from 'react'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import classes from './FacetPanel.module.css'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

type ValueProps = {
  name: string
  /** For example "action". */
  kind: string
  count: number
  /** Of the most frequent value of the facet, from 0 to 1. */
  share: number
  /** Null if the service can't filter by the value. */
  onFilter: (() => void) | null
  /** `reason` tells why it can't be excluded. */
  exclude?: { reason: string | null; run: () => void }
}

export function FacetValue({ name, kind, count, share, onFilter, exclude }: ValueProps) {
  // The share is drawn behind the text.
  const style: CSSProperties = { backgroundSize: `${Math.round(share * 100)}% 100%` }
  return (
    <li className={classes.value}>
      <button
        type="button"
        className={classes.filter}
        style={style}
        title={showInvisible(name)}
        disabled={onFilter === null}
        onClick={() => onFilter?.()}
      >
        <span className="truncate">{showInvisible(name)}</span>
        <span className="soft numeric">{formatCount(count)}</span>
        <VisuallyHidden>
          {count === 1 ? 'event' : 'events'}, filter by this {kind}
        </VisuallyHidden>
      </button>
      {exclude && (
        <DisabledReason reason={exclude.reason}>
          <button
            type="button"
            className={classes.exclude}
            aria-label={`Exclude ${kind}: ${name}`}
            title={exclude.reason === null ? 'Exclude this' : undefined}
            onClick={exclude.run}
          >
            <Icon name="exclude" size={12} />
          </button>
        </DisabledReason>
      )}
    </li>
  )
}
