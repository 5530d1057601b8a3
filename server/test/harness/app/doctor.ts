import assert from 'node:assert/strict'
import { runAnnals } from './annals-process.ts'
import { runCommandInHost } from './command-host.ts'

type DoctorCheck = { name: string; status: string; message: string; advice: string | null }

/** What `annals doctor --json` finds, by the name of the check. */
export type Diagnosis = { code: number | null; checks: Map<string, DoctorCheck>; text: string }

/** Runs the command, and checks what holds for every report. */
export async function diagnose(
  env: Record<string, string>,
  { args = [], within = [] }: { args?: readonly string[]; within?: readonly string[] } = {},
): Promise<Diagnosis> {
  const command = ['doctor', '--json', ...args]
  const needsProcess = within.length > 0 || 'NODE_OPTIONS' in env
  const outcome = needsProcess
    ? await runAnnals(command, env, within)
    : await runCommandInHost(command, env)
  const { code, stdout, stderr } = outcome
  assert.equal(stderr, '')
  const report: { ok: boolean; checks: DoctorCheck[] } = JSON.parse(stdout)
  const isFailed = report.checks.some(({ status }) => status === 'failed')
  assert.deepEqual([report.ok, code], [!isFailed, isFailed ? 1 : 0])
  for (const { name, status, message, advice } of report.checks) {
    assert.match(message, /\S/, name)
    const needsAdvice = status === 'warning' || status === 'failed'
    assert.equal(advice !== null, needsAdvice, `${name}: ${message}`)
  }
  const checks = new Map(report.checks.map((check) => [check.name, check]))
  assert.equal(checks.size, report.checks.length)
  return { code, checks, text: stdout }
}

/** The shared engine of the tests is faster without it. */
const NO_FSYNC = /^fsync is off/

/** The checks that are neither ok nor skipped. */
export function problemsOf({ checks }: Diagnosis): string[] {
  const problems = [...checks.values()].filter(
    ({ status, message }) => /warning|failed/.test(status) && !NO_FSYNC.test(message),
  )
  return problems.map(({ name, status }) => `${status} ${name}`)
}

/** Asserts that this check is the only one that finds something. */
export function assertOnly(
  diagnosis: Diagnosis,
  status: 'warning' | 'failed',
  name: string,
  message: RegExp,
): void {
  assert.deepEqual(problemsOf(diagnosis), [`${status} ${name}`], diagnosis.text)
  assert.match(diagnosis.checks.get(name)?.message ?? '', message)
}
