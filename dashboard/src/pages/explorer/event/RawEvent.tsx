import { CodeBlock } from '../../../parts/text/CodeBlock.tsx'
import type { ExplorerEvent } from '../explorer-event.ts'
import panel from './EventPanel.module.css'
import classes from './RawEvent.module.css'

/** The event as in a JSONL export, with what is needed to verify it. */
export function RawEvent({ event }: { event: ExplorerEvent }) {
  return (
    <section className={panel.section} aria-label="Raw JSON">
      <details key={event.id}>
        <summary className={classes.summary}>Raw JSON</summary>
        <CodeBlock text={JSON.stringify(event, null, 2)} label="raw JSON" />
      </details>
    </section>
  )
}
