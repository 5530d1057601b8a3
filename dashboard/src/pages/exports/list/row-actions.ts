import type { Export, ExportBody } from '../exports.ts'

/** What the list does on behalf of a row. */
export type RowActions = {
  onNew: (start?: ExportBody) => void
  onNotice: (sentence: string, job?: Export) => void
  onDownload: () => void
}
