import { ActionIcon } from '@mantine/core'
import type { ReactNode } from 'react'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { formatRelative, formatUtc, formatWithOffset } from '../../../parts/time/time.ts'
import { LOCAL_TIME_ZONE } from '../../../parts/time/time-zone.ts'
import { type Names, tracePatch } from '../list/columns.ts'
import classes from './EventPanel.module.css'
import { exclusionIn, exclusionText, EXCLUSIONS_FULL_TEXT } from '../../../query/exclusions.ts'
import { delayText, type ExplorerEvent } from '../explorer-event.ts'
import { addPatch, type SearchPatch } from '../../../query/explorer-search.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

type FieldsProps = {
  event: ExplorerEvent
  names: Names
  mayExclude: boolean
  onFilter: (patch: SearchPatch) => void
}

/** The fields of an event: when, who, what and where. */
export function EventFields({ event, names, mayExclude, onFilter }: FieldsProps) {
  const { actor, resource, category, action } = event
  const ms = Date.parse(event.timestamp)
  const receivedMs = Date.parse(event.receivedAt)
  const delay = delayText(event)
  const common = { mayExclude, onFilter }
  return (
    <>
      <Part title="When">
        <Field label="Time" isTime>
          <BothTimes ms={ms} />
          <span className="soft">({formatRelative(ms, Date.now())})</span>
        </Field>
        <Field label="Received" isTime>
          <BothTimes ms={receivedMs} />
          {delay !== null && <StatusText tone="warn">{delay}</StatusText>}
        </Field>
      </Part>
      <Part title="Who">
        {actor === null && <Field label="Actor">{missingText(event, 'actor')}</Field>}
        <Value
          label="Email"
          text={actor?.email}
          patch={{ actorEmail: actor?.email ?? null }}
          {...common}
        />
        <Value label="ID" text={actor?.id} patch={{ actorId: actor?.id ?? null }} {...common} />
        <Value
          label="Role"
          text={actor?.role}
          patch={{ actorRole: actor?.role ?? null }}
          {...common}
        />
      </Part>
      <Part title="What">
        <Value label="Action" text={action} patch={{ action }} {...common} />
        <Value label="Category" text={category} patch={{ category }} {...common} />
        {resource === null && <Field label="Resource">{missingText(event, 'resource')}</Field>}
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
      <WhereFields event={event} names={names} mayExclude={mayExclude} onFilter={onFilter} />
    </>
  )
}

/** In the browser's time zone and in UTC. */
function BothTimes({ ms }: { ms: number }) {
  return (
    <>
      {LOCAL_TIME_ZONE !== 'UTC' && <div className={classes.time}>{formatWithOffset(ms)}</div>}
      <div>{formatUtc(ms)}</div>
    </>
  )
}

function WhereFields({ event, names, mayExclude, onFilter }: FieldsProps) {
  const { projectId, traceId, workspaceId } = event
  const common = { mayExclude, onFilter }
  return (
    <Part title="Where">
      <Value
        label="Workspace"
        text={names.workspace(workspaceId)}
        patch={{ workspaceId }}
        {...common}
      />
      {projectId !== null && (
        <Value label="Project" text={names.project(projectId)} patch={{ projectId }} {...common} />
      )}
      <Field label="Trace">
        {traceId === null ? (
          <span className="soft">None</span>
        ) : (
          <>
            <CopyableText text={traceId} />
            <FilterButton what="trace" onClick={() => onFilter(tracePatch(event) ?? {})} />
          </>
        )}
      </Field>
      <Field label="Event ID">
        <CopyableText text={event.id} />
      </Field>
    </Part>
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

function Field({
  label,
  isTime = false,
  children,
}: {
  label: string
  isTime?: boolean
  children: ReactNode
}) {
  return (
    <>
      <dt>{label}</dt>
      <dd className={isTime ? 'numeric' : undefined}>{children}</dd>
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
    <Field label={label}>
      <span className={classes.text}>{showInvisible(text)}</span>
      {patch && <FilterButton what={what} onClick={() => onFilter(addPatch(patch))} />}
      {exclusion && (
        <ExcludeButton
          what={what}
          reason={mayExclude ? null : EXCLUSIONS_FULL_TEXT}
          onClick={() => onFilter({ exclude: exclusionText(exclusion) })}
        />
      )}
    </Field>
  )
}

type FieldButtonProps = { what: string; onClick: () => void }

function FilterButton({ what, onClick }: FieldButtonProps) {
  return (
    <ActionIcon
      {...FIELD_BUTTON}
      aria-label={`Filter by this ${what}`}
      title="Filter by this"
      onClick={onClick}
    >
      <Icon name="filter" size={12} />
    </ActionIcon>
  )
}

function ExcludeButton({ what, reason, onClick }: FieldButtonProps & { reason: string | null }) {
  return (
    <DisabledReason reason={reason}>
      <ActionIcon
        {...FIELD_BUTTON}
        aria-label={`Exclude this ${what}`}
        title={reason === null ? 'Exclude this' : undefined}
        onClick={onClick}
      >
        <Icon name="exclude" size={12} />
      </ActionIcon>
    </DisabledReason>
  )
}

const FIELD_BUTTON = {
  size: 'xs',
  variant: 'subtle',
  color: 'gray',
  className: classes.filter,
} as const
