import { formatUtcMs } from '../../platform/time/utc-time.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { ExportFormat, ExportJob } from './job/export-job.ts'

/** The names of a job's company, and of its workspace if it has only one. */
export type OwnerNames = { company: string; workspace: string | null }

export const FILE_EXTENSIONS: Record<ExportFormat, string> = { JSONL: 'jsonl', CSV: 'csv' }

/** With three such parts and the period, a name stays below the 255 bytes that file systems allow. */
const PART_LENGTH_MAX = 40
/** A letter can take four bytes. */
const PART_BYTES_MAX = 60

/**
 * The value of `content-disposition`. It has the file name twice: in ASCII for every client, and with all
 * letters for clients that know RFC 5987.
 */
export function contentDispositionOf(
  job: ExportJob,
  owner: OwnerNames,
  extension: string = FILE_EXTENSIONS[job.format],
): string {
  const ascii = `${fileNameOf(job, owner, asciiPart)}.${extension}`
  const full = encodeURIComponent(`${fileNameOf(job, owner, letterPart)}.${extension}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${full}`
}

/** `acme-production-2026-03-01--2026-04-01`, with the name of the export before the period. */
function fileNameOf(
  job: ExportJob,
  { company, workspace }: OwnerNames,
  partOf: (text: string) => string,
): string {
  const parts = [company, workspace ?? workspacesText(job), job.name ?? ''].map(partOf)
  const owner = parts.filter((part) => part !== '').join('-') || 'annals'
  return `${owner}-${periodText(job)}`
}

function workspacesText({ ranges }: ExportJob): string {
  return ranges.length < 2 ? '' : `${ranges.length} workspaces`
}

/** The rows were fixed when the job was created, so that is the end of a period without one. */
function periodText({ filter: { fromMs, toMs }, createdAt }: ExportJob): string {
  const end = timeText(toMs ?? createdAt.getTime())
  return fromMs === null ? `until-${end}` : `${timeText(fromMs)}--${end}`
}

/** The day, or the minute of a time that isn't the start of a day. Colons aren't allowed on every system. */
function timeText(ms: number): string {
  const text = formatUtcMs(ms)
  return ms % DAY_MS === 0 ? text.slice(0, 10) : `${text.slice(0, 16).replace(':', '')}Z`
}

/** Accents are removed, and runs of other characters become a hyphen. */
function asciiPart(text: string): string {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  return hyphenated(plain, /[^a-z0-9]+/g)
    .slice(0, PART_LENGTH_MAX)
    .replace(/-$/, '')
}

/** Nothing but letters and digits, so that no name can contain a path, a quote or a control character. */
function letterPart(text: string): string {
  let part = ''
  for (const letter of hyphenated(text.normalize('NFC').toLowerCase(), /[^\p{L}\p{M}\p{N}]+/gu)) {
    const longer = part + letter
    if (longer.length > PART_LENGTH_MAX || Buffer.byteLength(longer) > PART_BYTES_MAX) break
    part = longer
  }
  return part.replace(/-$/, '')
}

function hyphenated(text: string, others: RegExp): string {
  return text.replaceAll(others, '-').replaceAll(/^-|-$/g, '')
}
