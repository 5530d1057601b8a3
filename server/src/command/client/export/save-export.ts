import { existsSync } from 'node:fs'
import { access, constants, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Annals } from '../../../../../sdk/src/annals.ts'
import { AnnalsApiError } from '../../../../../sdk/src/client/errors.ts'
import {
  type DownloadedExport,
  downloadExport,
  findComplete,
} from '../../../../../sdk/src/node/download-export.ts'
import type {
  ExportInput,
  ExportJob,
  ExportManifest,
} from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { randomHex } from '../../../platform/id.ts'
import { parseJson } from '../../../platform/json/parse-json.ts'
import { monotonicClock as clock } from '../../../platform/time/clock.ts'
import { ProgressBar } from './progress-bar.ts'
import type { ClientCommand } from '../run-client.ts'

/** The slowest restore from a cold storage class takes two days. */
const RESTORE_MS_MAX = 50 * 3_600_000
/** Checkpoints are signed a few seconds after new events, unless the operator configured a longer time. */
const MANIFEST_MS_MAX = 120_000
const MANIFEST_RETRY_MS = 1_000

export type SaveOptions = { wait?: boolean; manifest?: boolean; force?: boolean }

/** Throws before the service has done any work. */
export async function requireWritable(path: string): Promise<void> {
  if (path === '-') throw new OperatorError('Exports are saved as files. Pass a path instead of -.')
  const folder = dirname(path)
  try {
    await access(folder, constants.W_OK)
  } catch (cause) {
    throw new OperatorError(`The folder ${folder} doesn't exist, or you can't write to it.`, {
      cause,
    })
  }
}

/** Throws if a file would be overwritten, unless it belongs to this job. Null for a new one. */
export async function requireFree(
  path: string,
  { manifest = false }: Pick<SaveOptions, 'manifest'>,
  getJob: () => Promise<ExportJob | null>,
): Promise<void> {
  const manifestPath = manifestPathOf(path)
  const found = [path, ...(manifest ? [manifestPath] : [])].filter((file) => existsSync(file))
  const job = found.length > 0 ? await getJob() : null
  for (const file of found) {
    const isSame = file === path ? isFileOf : isManifestOf
    if (job !== null && (await isSame(job, file))) continue
    const what = file === path ? 'this export' : 'the manifest of this export'
    throw new OperatorError(
      `${file} already exists and is not ${what}. Choose another path, or add --force.`,
    )
  }
}

function manifestPathOf(path: string): string {
  return `${path}.manifest.json`
}

async function isFileOf(job: ExportJob, path: string): Promise<boolean> {
  return (await findComplete(job, path)) !== null
}

/** A job that was run again has the same file. */
async function isManifestOf({ sha256 }: ExportJob, path: string): Promise<boolean> {
  try {
    return sha256 !== null && parseJson(await readFile(path, 'utf8')).sha256 === sha256
  } catch {
    return false
  }
}

/** Downloads a job to a file, with its manifest beside it if wanted, and says how to check both offline. */
export async function saveExport(
  { annals, output, signal }: ClientCommand,
  { jobId, path }: { jobId: string; path: string },
  { wait = false, manifest = false, force = false }: SaveOptions,
): Promise<void> {
  await requireWritable(path)
  if (!force) {
    await requireFree(path, { manifest }, () => annals.exports.get(jobId, { signal }))
  }
  const saved = await download(annals, { jobId, path, wait, signal })
  const manifestPath = manifest ? manifestPathOf(path) : null
  if (manifestPath !== null) {
    output.note('Waiting for the manifest…')
    const found = await waitForManifest(annals, saved.jobId, signal)
    await replaceFile(manifestPath, JSON.stringify(found))
  }
  await output.item({ ...saved, manifest: manifestPath }, [
    ['job', saved.jobId],
    ['file', saved.path],
    ['rows', String(saved.rows)],
    ['bytes', String(saved.bytes)],
    ['sha256', saved.sha256],
    ...(manifestPath === null ? [] : ([['manifest', manifestPath]] as const)),
  ])
  output.note(checkSentence(saved, manifestPath))
}

/** Replaces a link instead of the file that it leads to. */
async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomHex(6)}.part`
  try {
    await writeFile(draft, text, { flag: 'wx' })
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

async function download(
  annals: Annals,
  {
    jobId,
    path,
    wait,
    signal,
  }: { jobId: string; path: string; wait: boolean; signal: AbortSignal },
): Promise<DownloadedExport> {
  using bar = new ProgressBar(clock)
  const done = new AbortController()
  // Alongside the download, which doesn't wait for it.
  if (process.stderr.isTTY) void expectSize(annals, { jobId, bar, signal: done.signal })
  try {
    return await downloadExport(annals, jobId, path, {
      signal,
      restoreWaitMsMax: wait ? RESTORE_MS_MAX : 0,
      onProgress: (progress) => bar.show(progress),
    })
  } finally {
    done.abort()
  }
}

/** The size of an earlier download of the job, or else an estimate. Without one, there is no bar. */
async function expectSize(
  annals: Annals,
  { jobId, bar, signal }: { jobId: string; bar: ProgressBar; signal: AbortSignal },
): Promise<void> {
  try {
    const job = await annals.exports.get(jobId, { signal })
    const { bytes, source, format, rowLimit, evidence, filters } = job
    if (bytes !== null) return bar.expect(Number(bytes))
    const { text, anyOf, not, ...others } = filters
    if (anyOf || not) return
    const input: ExportInput = {
      source,
      format,
      filters: { ...others, ...(text !== undefined && { q: text }) },
      limit: Number(rowLimit),
      ...(evidence === 'COMPLETE' && { evidence }),
    }
    const { estimatedBytes } = await annals.exports.preflight(input, { signal })
    bar.expect(Number(estimatedBytes))
  } catch {
    // The download reports what is wrong.
  }
}

async function waitForManifest(
  annals: Annals,
  jobId: string,
  signal: AbortSignal,
): Promise<ExportManifest> {
  const giveUpAtMs = clock() + MANIFEST_MS_MAX
  for (;;) {
    try {
      return await annals.exports.manifest(jobId, { signal })
    } catch (error) {
      const isUnsigned =
        error instanceof AnnalsApiError && error.status === 409 && error.retryAfterMs !== null
      if (!isUnsigned) throw error
      if (clock() > giveUpAtMs) {
        throw new OperatorError(
          'The file is complete, but its events are not signed yet. Run the command again later to get the manifest.',
          { cause: error },
        )
      }
      await delay(Math.max(MANIFEST_RETRY_MS, error.retryAfterMs ?? 0), undefined, { signal })
    }
  }
}

/** For a shell, in which a single quote ends the text. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function checkSentence({ path, sha256 }: DownloadedExport, manifestPath: string | null): string {
  return manifestPath === null
    ? `Check the file offline: echo ${quoted(`${sha256}  ${path}`)} | sha256sum --check`
    : `Check both offline, with the key from your operator: annals-verify export ${quoted(path)} --manifest ${quoted(manifestPath)} --vkey KEY`
}
