export type TreeTileTable = {
  workspace_id: string
  level: number
  number: number
  hashes: Buffer
}

export type CheckpointTable = {
  workspace_id: string
  tree_size: number
  size: number | null
  origin: string | null
  root: Buffer | null
  note: string | null
  vkey: string | null
  signed_at: Date | null
  refusal: string | null
}

export type CosignatureTable = {
  workspace_id: string
  witness: string
  size: number
  root: Buffer
  line: string
}

export type SignerLeaseTable = {
  is_only: boolean
  holder: string
  expires_at: Date
}
