import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { AnnalsError } from '../client/errors.ts'

/** The offline verifier, an unchanged copy in this package. */
const VERIFIER = fileURLToPath(new URL('../../verifier/annals-verify.mjs', import.meta.url))
const REPORT_BYTES_MAX = 16 * 1_048_576
const VERDICTS = ['PROVEN', 'TAMPERED', 'CANNOT_JUDGE'] as const

export type VerifyExportOptions = {
  /** The keys that you trust: of each ledger in the file, and of witnesses. Get them from the operator. */
  vkeys: readonly string[]
  /** The file with the response of `annals.exports.manifest`. */
  manifestPath?: string
  /** Treat a gap between two rows as tampering, for exports without filters. */
  noGaps?: boolean
  /** Accept a COMPLETE export that may leave out matching events before its first one. */
  allowLateStart?: boolean
  signal?: AbortSignal
}

export type ExportVerdict = {
  /** `CANNOT_JUDGE`: a file or a key is missing, unreadable or doesn't match. */
  verdict: (typeof VERDICTS)[number]
  /** What was proven, and what was not. */
  report: string
}

/**
 * Checks a downloaded export with `annals-verify`, offline, in its own process. It trusts only the given
 * keys.
 *
 * ```ts
 * const { verdict, report } = await verifyExport('events.jsonl', { vkeys, manifestPath: 'manifest.json' })
 * ```
 */
export async function verifyExport(
  path: string,
  options: VerifyExportOptions,
): Promise<ExportVerdict> {
  const { vkeys, manifestPath, noGaps = false, allowLateStart = false, signal } = options
  const args = [
    'export',
    pathArgument(path),
    ...(manifestPath === undefined ? [] : ['--manifest', pathArgument(manifestPath)]),
    ...vkeys.flatMap((vkey) => ['--vkey', vkey]),
    ...(noGaps ? ['--no-gaps'] : []),
    ...(allowLateStart ? ['--allow-late-start'] : []),
  ]
  const limits = { maxBuffer: REPORT_BYTES_MAX, ...(signal && { signal }) }
  return await new Promise((resolve, reject) => {
    execFile(process.execPath, [VERIFIER, ...args], limits, (error, stdout, stderr) => {
      const code = error === null ? 0 : error.code
      const verdict = typeof code === 'number' ? VERDICTS[code] : undefined
      if (verdict !== undefined) return resolve({ verdict, report: stdout + stderr })
      if (signal?.aborted) return reject(signal.reason)
      const message = 'The verifier could not run.'
      reject(new AnnalsError(message, { code: 'verifier_failed', cause: error }))
    })
  })
}

/** A path that starts with a dash would be taken for an option. */
function pathArgument(path: string): string {
  return path.startsWith('-') ? `./${path}` : path
}
