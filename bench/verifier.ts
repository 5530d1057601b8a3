import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  createRows,
  ledgerKey,
  lineOf,
  manifestOf,
  resealRow,
  type Row,
  stubOf,
  WORKSPACE,
} from '../server/test/harness/proof/provable-export.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { ROOT } from './lib/service.ts'

const EVENTS = Number(process.env.BENCH_EVENTS ?? 200_000)
const ROUNDS = 7
const VERIFIER = pathToFileURL(join(ROOT, 'verifier/annals-verify.mjs')).href

type Measured = { seconds: number; cpuSeconds: number; rssMb: number }

/** `npm run bench -- verifier`: events per second of `annals-verify export`, in a new process each. */
export async function benchVerifier(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  try {
    const ledger = createLedger()
    const key = ledgerKey()
    const isBilling = ({ category }: Row) => category === 'billing'
    const files = [
      { name: 'all events', filters: {}, evidence: 'MEMBERSHIP', lines: ledger.map(lineOf) },
      {
        name: 'COMPLETE, 1 of 8 matches',
        filters: { category: 'billing' },
        evidence: 'COMPLETE',
        lines: ledger.map((row) => lineOf(isBilling(row) ? row : stubOf(row))),
      },
    ]
    const rows = files.map(({ name, filters, evidence, lines }) => {
      const [path, manifestPath] = [join(folder, 'events.jsonl'), join(folder, 'manifest.json')]
      const file = lines.join('')
      const seqs = [1, ledger.length]
      const ledgers = [{ workspaceId: WORKSPACE, rows: ledger, key, seqs }]
      writeFileSync(path, file)
      writeFileSync(manifestPath, JSON.stringify(manifestOf(file, ledgers, { filters, evidence })))
      return measure(name, ['export', path, '--manifest', manifestPath, '--vkey', key.vkey])
    })
    process.stdout.write(`\n${table(rows)}\n\n`)
    const perCpuSecond = Number(rows[0]?.['events per CPU second'] ?? 0)
    const ratios = { 'events per CPU second (≥ 50,000)': perCpuSecond }
    saveResult('verifier', { ...benchEnvironment({}), events: EVENTS, rows, ratios })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function createLedger(): Row[] {
  const [template] = createRows(1)
  if (!template) throw new Error('no row')
  const ledger: Row[] = []
  for (let seq = 1; seq <= EVENTS; seq += 1) {
    const { idempotencyKey: _key, ...event } = sampleEvent(seq)
    const id = `019b0000-0000-7000-8000-${seq.toString(16).padStart(12, '0')}`
    const prevHash = ledger.at(-1)?.hash ?? '0'.repeat(64)
    ledger.push(resealRow({ ...template, ...event, id, seq, prevHash }))
  }
  return ledger
}

/** The median round by CPU time, which depends less on other programs than the time that passes. */
function measure(name: string, args: readonly string[]): Record<string, string | number> {
  const rounds = Array.from({ length: ROUNDS }, () => runOnce(args))
  const median = rounds.toSorted((a, b) => a.cpuSeconds - b.cpuSeconds)[Math.floor(ROUNDS / 2)]
  if (!median) throw new Error('no round')
  return {
    file: name,
    'events/s': Math.round(EVENTS / median.seconds),
    'events per CPU second': Math.round(EVENTS / median.cpuSeconds),
    'RSS, MB': Math.round(median.rssMb),
  }
}

function runOnce(args: readonly string[]): Measured {
  const program = `
    import { run } from ${JSON.stringify(VERIFIER)}
    const io = { out() {}, err(text) { console.error(text) }, isTerminal: false }
    const code = run(${JSON.stringify(args)}, io)
    if (code !== 0) throw new Error('exit code ' + code)
    const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
    console.log(JSON.stringify({ cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, rssMb: maxRSS / 1024 }))`
  const startedAtMs = performance.now()
  const output = execFileSync(join(ROOT, 'bin/node'), ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  })
  const seconds = (performance.now() - startedAtMs) / 1_000
  return { seconds, ...JSON.parse(output) }
}
