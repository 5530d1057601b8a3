const MARKER_KEY = /^annals-archive-[0-9a-f]{32}$/
/**
 * `<workspaceId>/<YYYY-MM>/<16-digit seq>-<16 hex digits>.parquet`. The hex digits are random. The marker of
 * a file that is not in the catalog yet ends in `.parquet.draft`.
 */
const SEGMENT_KEY =
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/\d{4}-(?:0[1-9]|1[0-2])\/\d{16}-[0-9a-f]{16}\.parquet(?:\.draft)?$/

/** `exports/<companyId>/<jobId>/<6-digit part>`: a part of the file of a scheduled export. */
const EXPORT_KEY = /^exports(?:\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}){2}\/\d{6}$/

export const SIGNER_PREFIX = 'signer/'
/**
 * The signer's objects: `signer/<workspaceId>`, `signer/<workspaceId>.replaced-<time>` for state that an operator
 * replaced, `signer/<workspaceId>.lost` for a workspace that an operator accepted as lost, and two objects for all
 * workspaces.
 */
const SIGNER_KEY =
  /^signer\/(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.replaced-\d{8}T\d{9}Z|\.lost)?|keys|conditional-writes)$/

/** Keys never lead outside of the folder or the prefix of a storage. */
export function isObjectKey(key: string): boolean {
  return [SEGMENT_KEY, EXPORT_KEY, MARKER_KEY, SIGNER_KEY].some((pattern) => pattern.test(key))
}

export function isSignerKey(key: string): boolean {
  return SIGNER_KEY.test(key)
}
