import type { WorkspaceId } from '../../platform/id.ts'
import { printableJson } from '../../platform/terminal/printable.ts'
import type { KeptCheckpoints } from './kept-checkpoints.ts'
import type { VerifyFinding, WorkspaceResult } from './workspace-result.ts'

/** Gets one line, and escapes what can't be printed. */
export type Print = (line: string) => void

/** What the archive says about workspaces that the database doesn't have. */
export type LostCounts = { lost: number; accepted: number; isReadable: boolean }

/** Where the verification of a workspace started, with `--since`. */
type Since = {
  workspaceId: WorkspaceId
  fromSeq: number
  /** When the chain was last verified from its first event on. Null if this run did that. */
  wholeChainAt: string | null
}

/** Prints what `annals verify` finds as it goes, or all of it as one line of JSON. */
export class VerifyReport {
  readonly #print: Print
  readonly #isJson: boolean
  readonly #hideProgress: () => void
  readonly #lost = new Set<WorkspaceId>()
  readonly #findings: VerifyFinding[] = []
  readonly #notes: string[] = []
  readonly #since: Since[] = []

  constructor(options: { print: Print; isJson: boolean; hideProgress: () => void }) {
    this.#print = options.print
    this.#isJson = options.isJson
    this.#hideProgress = options.hideProgress
  }

  addFinding(finding: VerifyFinding): void {
    this.#findings.push(finding)
    if (finding.kind === 'LOST' && finding.workspaceId) this.#lost.add(finding.workspaceId)
    this.#printLine(`${finding.kind} ${finding.text}`)
  }

  addNote(text: string): void {
    this.#notes.push(text)
    this.#printLine(`note: ${text}`)
  }

  /** Adds those that are not known yet, and returns how many they are. */
  addLost(findings: readonly (VerifyFinding & { workspaceId: WorkspaceId })[]): number {
    const added = findings.filter(({ workspaceId }) => !this.#lost.has(workspaceId))
    for (const finding of added) this.addFinding(finding)
    return added.length
  }

  /** `kept` are the checkpoints to start from, with `--since`. */
  addResult(
    { workspaceId, finding, skipped }: WorkspaceResult,
    kept: KeptCheckpoints | null,
  ): void {
    if (finding !== null) this.addFinding(finding)
    if (kept === null) return
    const checkpoint = kept.get(workspaceId)
    const isStart = checkpoint !== null && skipped > 0
    const wholeChainAt = isStart ? checkpoint.wholeChainAt : null
    this.#since.push({ workspaceId, fromSeq: skipped + 1, wholeChainAt })
    const where = `since: workspace ${workspaceId} from seq ${skipped + 1}`
    if (isStart) {
      const root = checkpoint.root.toString('base64')
      this.#printLine(
        `${where}: after the checkpoint ${root}; the whole chain was last verified at ${checkpoint.wholeChainAt}`,
      )
    } else {
      const reason =
        checkpoint === null
          ? 'no checkpoint of it was kept'
          : `what follows its checkpoint of ${checkpoint.size} events could not be verified alone`
      this.#printLine(`${where}: ${reason}`)
    }
  }

  /** Prints the result, and returns whether the ledger is intact. */
  end(
    results: readonly WorkspaceResult[],
    { lost, keyFault }: { lost: LostCounts; keyFault: string | null },
  ): boolean {
    const faults = faultsOf(results, { lost, keyFault })
    if (lost.accepted > 0) this.addNote(`lost workspaces that were accepted: ${lost.accepted}`)
    const isIntact = faults.length === 0
    const sum = (read: (result: WorkspaceResult) => number) =>
      results.reduce((total, result) => total + read(result), 0)
    const events = sum((result) => result.events)
    const skipped = sum((result) => result.skipped)
    const signed = results.filter(({ isSigned }) => isSigned).length
    if (this.#isJson) {
      const counts = { workspaces: results.length, signedWorkspaces: signed, events, skipped }
      const lists = { findings: this.#findings, notes: this.#notes, since: this.#since }
      this.#print(printableJson({ ok: isIntact, ...counts, faults, ...lists }))
    } else if (isIntact) {
      this.#printLine(intactLine(results.length, { events, skipped }))
      if (signed > 0) {
        this.#printLine(
          `ok: the tiles and checkpoints of ${signed} signed workspaces match their chains`,
        )
      }
    } else {
      this.#printLine(`FAILED: ${faults.join(', ')}`)
    }
    return isIntact
  }

  #printLine(line: string): void {
    if (this.#isJson) return
    this.#hideProgress()
    this.#print(line)
  }
}

function intactLine(total: number, { events, skipped }: { events: number; skipped: number }) {
  if (skipped === 0) return `ok: ${events} events in ${total} workspaces, every chain is intact`
  return `ok: ${events} events in ${total} workspaces are intact; ${skipped} events before them were not verified again`
}

function faultsOf(
  results: readonly WorkspaceResult[],
  { lost, keyFault }: { lost: LostCounts; keyFault: string | null },
): string[] {
  const total = results.length
  const count = (fault: WorkspaceResult['fault']) =>
    results.filter((result) => result.fault === fault).length
  const faults = [
    { count: count('broken'), text: 'chains are broken' },
    { count: count('mismatched'), text: 'signed trees differ from their chains' },
    { count: count('unchecked'), text: 'chains could not be verified' },
  ].filter((fault) => fault.count > 0)
  const texts = faults.map((fault) => `${fault.count} of ${total} ${fault.text}`)
  if (lost.lost > 0) texts.push(`signed workspaces that are lost: ${lost.lost}`)
  if (!lost.isReadable) texts.push('the signed workspaces could not be listed')
  if (keyFault !== null) texts.push(keyFault)
  return texts
}
