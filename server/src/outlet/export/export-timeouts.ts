/** How long an export waits for the archive's storage before the caller gets an answer. */
export type ExportTimeouts = {
  /** For one file's readiness, and for starting further checks. */
  checkMs: number
  /** For the first bytes of a download. Then the headers go out, unless it waits for the archive. */
  firstChunkMs: number
  /** For the first bytes of a download that waits for the archive. */
  archiveMs: number
}

export const EXPORT_TIMEOUTS: ExportTimeouts = {
  checkMs: 10_000,
  firstChunkMs: 10_000,
  archiveMs: 30_000,
}
