import type { ReactNode } from 'react'
import type { Workspace } from '../../../api/session.ts'
import { CodeBlock } from '../../../parts/text/CodeBlock.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { formatUtc, formatWithOffset } from '../../../parts/time/time.ts'
import { type Run, starterOf } from '../runs.ts'
import classes from './Certificate.module.css'

type CertificateProps = { run: Run; companyName: string; workspace: Workspace | null }

export function Certificate({ run, companyName, workspace }: CertificateProps) {
  const { from, to, checked, firstSeq, lastSeq, checkpoint, finishedAt } = run
  return (
    <article className={classes.sheet} aria-label="Certificate">
      <header className={classes.head}>
        <h2>Certificate of verification</h2>
        <span>Annals</span>
      </header>
      <p className={classes.statement}>{run.verdict}</p>
      <dl className={classes.facts}>
        <Fact name="Company">{companyName}</Fact>
        <Fact name="Workspace">
          {workspace?.name ?? 'Audit log'} <Mono>{run.workspaceId}</Mono>
        </Fact>
        <Fact name="Verified">
          {from === null || to === null ? (
            'The whole chain'
          ) : (
            <>
              Events received from <Time at={from} /> up to, but not including, <Time at={to} />
            </>
          )}
        </Fact>
        <Fact name="Events">
          {formatCount(checked)}
          {firstSeq !== null &&
            lastSeq !== null &&
            `, numbers ${formatCount(firstSeq)} to ${formatCount(lastSeq)} in the chain`}
        </Fact>
        <Fact name="Verified at">{finishedAt && <Time at={finishedAt} />}</Fact>
        <Fact name="Started by">{starterOf(run)}</Fact>
        <Fact name="Verification">
          <Mono>{run.id}</Mono>
        </Fact>
        {checkpoint && <CheckpointFacts checkpoint={checkpoint} lastSeq={lastSeq} />}
      </dl>
      <Meaning run={run} />
      {checkpoint && <Instructions checkpoint={checkpoint} isPeriod={from !== null} />}
    </article>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Mono({ children }: { children: string }) {
  return <span className={classes.mono}>{children}</span>
}

/** In UTC, because the page is printed, and in the viewer's time zone. */
function Time({ at }: { at: string }) {
  const ms = Date.parse(at)
  return (
    <>
      {formatUtc(ms).replace('.000', '')}
      <span className={classes.soft}> ({formatWithOffset(ms)})</span>
    </>
  )
}

type Checkpoint = NonNullable<Run['checkpoint']>

function CheckpointFacts({
  checkpoint: { size, root, vkey, signedAt },
  lastSeq,
}: {
  checkpoint: Checkpoint
  lastSeq: number | null
}) {
  const newer = (lastSeq ?? 0) - size
  return (
    <>
      <Fact name="Checkpoint">
        {formatCount(size)} events, signed <Time at={signedAt} />
        {newer > 0 && `. ${formatCount(newer)} of the verified events are newer than it.`}
      </Fact>
      <Fact name="Root">
        <Mono>{root}</Mono>
      </Fact>
      <Fact name="Key">
        <Mono>{vkey}</Mono>
      </Fact>
    </>
  )
}

function Meaning({ run: { checkpoint, checked } }: { run: Run }) {
  return (
    <div className={classes.columns}>
      <section>
        <h3>What this shows</h3>
        <ul>
          {checked > 0 && (
            <li>
              Annals recomputed the hash of each of these events. None was changed, removed,
              inserted or moved after Annals stored it.
            </li>
          )}
          {checkpoint ? (
            <li>
              The events that the checkpoint covers are in the tree with this root, and the
              checkpoint is signed with this key.
            </li>
          ) : (
            <li>
              The events before and after belong to the same chain. No signed checkpoint covered
              these events at the time, so this can’t be checked without Annals.
            </li>
          )}
        </ul>
      </section>
      <section>
        <h3>What this doesn’t show</h3>
        <ul>
          <li>That an event is true, or that every action was sent to Annals.</li>
          <li>Anything about other events, or about changes after this verification.</li>
          <li>That this page is genuine. Check the signature yourself.</li>
        </ul>
      </section>
    </div>
  )
}

function Instructions({
  checkpoint: { note, vkey },
  isPeriod,
}: {
  checkpoint: Checkpoint
  isPeriod: boolean
}) {
  const { origin } = window.location
  return (
    <section className={classes.steps}>
      <h3>Check it without Annals</h3>
      <ol>
        <li>
          Get the verifier from <Address href={`${origin}/annals-verify.mjs`} />, and compare the
          key with <Address href={`${origin}/.well-known/annals.json`} /> and with the one that the
          operator gave you.
        </li>
        <li>
          Save the signed checkpoint as checkpoint.txt:
          <CodeBlock text={note} label="checkpoint" />
        </li>
        <li>
          Check its signature. Keep the file, because it reveals later changes to these events.
          <CodeBlock
            text={`node annals-verify.mjs checkpoint checkpoint.txt --vkey '${vkey}'`}
            label="command"
          />
        </li>
        <li>
          To check the events themselves, export {isPeriod ? 'the period' : 'them'} as JSONL with
          “Prove that nothing is missing”, and run the verifier on the file.
        </li>
      </ol>
    </section>
  )
}

function Address({ href }: { href: string }) {
  return (
    <a href={href} className={classes.link}>
      {href}
    </a>
  )
}
