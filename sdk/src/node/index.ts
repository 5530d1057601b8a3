export { diskSpool, type DiskSpoolOptions } from './disk-spool.ts'
export { downloadExport, type DownloadedExport, type DownloadOptions } from './download-export.ts'
export { type ExportVerdict, verifyExport, type VerifyExportOptions } from './verify-export.ts'
