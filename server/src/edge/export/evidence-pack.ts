import { setTimeout as delay } from 'node:timers/promises'
import { ApiError } from '../../errors.ts'
import { type ExportJob, isOpen } from '../../outlet/export/job/export-job.ts'
import { FILE_EXTENSIONS } from '../../outlet/export/file-name.ts'
import type { OpenDownload } from '../../outlet/export/schedule/stored-file.ts'
import { requireSigning } from '../../outlet/proof/read-proof.ts'
import { type ZipFile, zipFiles } from '../../platform/zip.ts'
import { readVerifier } from '../serve-verifier.ts'
import type { Pack } from './download-manager.ts'
import { evidenceReadme } from './evidence-readme.ts'
import {
  finishedResult,
  type ManifestCall,
  type ManifestDeps,
  manifestJson,
} from './export-manifest.ts'
import { exportRecord } from './export-record.ts'

/** The newest events of an export are signed within seconds, and a browser doesn't retry a download. */
const UNSIGNED_WAITS_MAX = 30
const UNSIGNED_WAIT_MS = 500

/** The file of a job with its manifest, the verifier and instructions. */
export function evidencePack(
  deps: ManifestDeps,
  call: Omit<ManifestCall, 'signal'>,
  job: ExportJob,
): Pack {
  return {
    check: async (signal) => {
      requireSigning(deps)
      // Opening the download reports this.
      if (!isOpen(job.status) && job.storedParts === null) return
      const result = job.storedParts === null ? expectedResult(job) : finishedResult(job)
      await untilSigned(signal, () => manifestJson(deps, { ...call, signal }, job, result))
    },
    chunks: (download, finish) =>
      zipFiles(
        packFiles(deps, { ...call, signal: download.signal }, job, { download, finish }),
        job.createdAt,
      ),
  }
}

/** Before the download, a file can have lines up to the end of each range. */
function expectedResult({ ranges }: ExportJob) {
  const spans = ranges.map(({ fromSeq, toSeq }) => ({ firstSeq: fromSeq, lastSeq: toSeq }))
  return { rows: 0, sha256: '', spans }
}

async function untilSigned(signal: AbortSignal, read: () => Promise<unknown>): Promise<void> {
  for (let waits = 0; ; waits += 1) {
    try {
      await read()
      return
    } catch (error) {
      if (waits === UNSIGNED_WAITS_MAX || !isUnsigned(error)) throw error
    }
    await delay(UNSIGNED_WAIT_MS, undefined, { signal }).catch(() => signal.throwIfAborted())
  }
}

function isUnsigned(error: unknown): boolean {
  return (
    error instanceof ApiError && error.code === 'conflict' && error.retryAfterSeconds !== undefined
  )
}

/**
 * The rows come first, because the manifest contains their digest. The job succeeds only once the manifest is
 * complete: if that fails, the pack can be downloaded again.
 */
async function* packFiles(
  deps: ManifestDeps,
  call: ManifestCall,
  job: ExportJob,
  { download, finish }: { download: OpenDownload; finish: () => Promise<unknown> },
): AsyncGenerator<ZipFile, void, void> {
  const file = `events.${FILE_EXTENSIONS[job.format]}`
  yield { name: file, chunks: download.chunks() }
  const { result } = download
  const { json, origins } = await manifestJson(deps, call, job, result)
  const verifier = await readVerifier()
  call.signal.throwIfAborted()
  await finish()
  const { rows, sha256 } = result
  const readme = evidenceReadme(
    { ...exportRecord(job), jobId: job.id, rows, sha256 },
    { file, origins },
  )
  yield { name: 'manifest.json', chunks: [Buffer.from(json)] }
  yield { name: 'annals-verify.mjs', chunks: [verifier] }
  yield { name: 'README.txt', chunks: [Buffer.from(readme)] }
}
