/** The fields that the hash of an event covers, in the order of a stub. Listed here, to be independent of the service. */
export const CORE_FIELDS = [
  'id',
  'seq',
  'timestamp',
  'receivedAt',
  'companyId',
  'workspaceId',
  'projectId',
  'category',
  'action',
  'traceId',
  'sealed',
  'prevHash',
] as const

/** The fields of a row of a JSONL export, in any order. */
export const ROW_FIELDS = [
  ...CORE_FIELDS,
  'hash',
  'actor',
  'resource',
  'metadata',
  'salts',
] as const
