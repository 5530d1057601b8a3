import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './service.ts'

/** Where and with what the numbers were measured. Numbers without this context mean nothing. */
export function benchEnvironment(postgresSettings: Record<string, string>) {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  return {
    measuredAt: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD'),
    hasUncommittedChanges: git('status', '--porcelain') !== '',
    node: process.version,
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    postgresSettings,
  }
}

export function saveResult(name: string, result: object): string {
  const folder = join(ROOT, 'bench/results')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${name}.json`)
  writeFileSync(path, `${JSON.stringify(result, null, 2)}\n`)
  return path
}

/** Formats rows as an aligned table. */
export function table(rows: readonly Record<string, string | number>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const cells = [names, ...rows.map((row) => names.map((name) => format(row[name] ?? '')))]
  const widths = names.map((_, column) =>
    Math.max(...cells.map((line) => (line[column] ?? '').length)),
  )
  return cells
    .map((line) => line.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
    .join('\n')
}

function format(value: string | number): string {
  if (typeof value === 'string') return value
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
