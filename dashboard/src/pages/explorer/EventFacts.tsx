import { ActionIcon } from '@mantine/core'
import type { ReactNode } from 'react'
import { CopyText } from '../../parts/CopyText.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { Refused } from '../../parts/Refused.tsx'
import { ago, formatLocal, formatUtc } from '../../parts/time.ts'
import { type Names, tracePatch } from './columns.ts'
import classes from './EventPanel.module.css'
import { exclusionIn, exclusionText, FULL_WORDS } from './exclusions.ts'
import type { ExplorerEvent } from './explorer-event.ts'
import type { SearchPatch } from './explorer-search.ts'

type FactsProps = {
  event: ExplorerEvent
  names: Names
  mayExclude: boolean
  onFilter: (patch: SearchPatch) => void
}

/** The fields of an event: when, who, what and where. */
export function EventFacts({ event, names, mayExclude, onFilter }: FactsProps) {
  const { actor, resource, category, action, projectId, traceId, workspaceId } = event
  const ms = Date.parse(event.timestamp)
  const receivedMs = Date.parse(event.receivedAt)
  const common = { mayExclude, onFilter }
  return (
    <>
      <Part title="When">
        <Fact label="Time">
          {formatLocal(ms, 'full')} <span className="soft">({ago(ms, Date.now())})</span>
        </Fact>
        <Fact label="UTC">{formatUtc(ms)}</Fact>
        <Fact label="Received">{formatLocal(receivedMs, 'full')}</Fact>
      </Part>
      <Part title="Who">
        {actor === null && <Fact label="Actor">{missingText(event, 'actor')}</Fact>}
        <Value
          label="Email"
          text={actor?.email}
          patch={{ actorEmail: actor?.email ?? null }}
          {...common}
        />
        <Value label="ID" text={actor?.id} patch={{ actorId: actor?.id ?? null }} {...common} />
        <Value label="Role" text={actor?.role} patch={null} {...common} />
      </Part>
      <Part title="What">
        <Value label="Action" text={action} patch={{ action }} {...common} />
        <Value label="Category" text={category} patch={{ category }} {...common} />
        {resource === null && <Fact label="Resource">{missingText(event, 'resource')}</Fact>}
        <Value
          label="Type"
          text={resource?.type}
          patch={{ resourceType: resource?.type ?? null }}
          {...common}
        />
        <Value
          label="Resource"
          text={resource?.id}
          patch={{ resourceId: resource?.id ?? null }}
          {...common}
        />
      </Part>
      <Part title="Where">
        <Value
          label="Workspace"
          text={names.workspace(workspaceId)}
          patch={{ workspaceId }}
          {...common}
        />
        {projectId !== null && (
          <Value
            label="Project"
            text={names.project(projectId)}
            patch={{ projectId }}
            {...common}
          />
        )}
        <Fact label="Trace">
          {traceId === null ? (
            <span className="soft">None</span>
          ) : (
            <>
              <CopyText text={traceId} />
              <FilterButton what="trace" onClick={() => onFilter(tracePatch(event) ?? {})} />
            </>
          )}
        </Fact>
        <Fact label="Event ID">
          <CopyText text={event.id} />
        </Fact>
      </Part>
    </>
  )
}

function missingText({ sealed }: ExplorerEvent, part: 'actor' | 'resource'): ReactNode {
  return <span className="soft">{part in sealed ? 'Erased' : 'None'}</span>
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={classes.section} aria-label={title}>
      <h3 className={classes.heading}>{title}</h3>
      <dl className={classes.facts}>{children}</dl>
    </section>
  )
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt>{label}</dt>
      <dd className="numeric">{children}</dd>
    </>
  )
}

function Value({
  label,
  text,
  patch,
  mayExclude,
  onFilter,
}: {
  label: string
  text: string | undefined
  patch: SearchPatch | null
  mayExclude: boolean
  onFilter: (patch: SearchPatch) => void
}) {
  if (text === undefined) return null
  const what = label === 'ID' ? label : label.toLowerCase()
  const exclusion = patch && exclusionIn(patch)
  return (
    <Fact label={label}>
      <span className={classes.text}>{text}</span>
      {patch && <FilterButton what={what} onClick={() => onFilter(patch)} />}
      {exclusion && (
        <ExcludeButton
          what={what}
          reason={mayExclude ? null : FULL_WORDS}
          onClick={() => onFilter({ exclude: exclusionText(exclusion) })}
        />
      )}
    </Fact>
  )
}

type FactButtonProps = { what: string; onClick: () => void }

function FilterButton({ what, onClick }: FactButtonProps) {
  return (
    <ActionIcon
      {...FACT_BUTTON}
      aria-label={`Filter by this ${what}`}
      title="Filter by this"
      onClick={onClick}
    >
      <Icon name="filter" size={12} />
    </ActionIcon>
  )
}

function ExcludeButton({ what, reason, onClick }: FactButtonProps & { reason: string | null }) {
  return (
    <Refused reason={reason}>
      <ActionIcon
        {...FACT_BUTTON}
        aria-label={`Exclude this ${what}`}
        title={reason === null ? 'Exclude this' : undefined}
        onClick={onClick}
      >
        <Icon name="exclude" size={12} />
      </ActionIcon>
    </Refused>
  )
}

const FACT_BUTTON = {
  size: 'xs',
  variant: 'subtle',
  color: 'gray',
  className: classes.filter,
} as const
