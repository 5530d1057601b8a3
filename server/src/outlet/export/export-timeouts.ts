/** How long requests wait for the archive's storage, and downloads for their clients. */
export type ExportTimeouts = {
  /**
   * Limits each file's readiness check, and the time in which further checks can start. Also limits the search
   * for an event.
   */
  checkMs: number
  /** For the first bytes of a download. After that, the headers are sent, unless it waits for the archive. */
  firstChunkMs: number
  /** For the first bytes of a download that waits for the archive. */
  archiveMs: number
  /** A client that has read nothing for this long can lose its download to another company on a full node. */
  unreadMs: number
}

export const EXPORT_TIMEOUTS: ExportTimeouts = {
  checkMs: 10_000,
  firstChunkMs: 10_000,
  archiveMs: 30_000,
  unreadMs: 30_000,
}
