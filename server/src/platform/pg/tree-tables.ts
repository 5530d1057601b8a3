import type { Generated } from 'kysely'

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

export type CheckpointDayTable = {
  workspace_id: string
  day: Date
  size: number
  root: Buffer
  note: string
  vkey: string
  signed_at: Date
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

export type SigningKeyListTable = {
  is_only: Generated<boolean>
  list: string
}

export type VerifyRunTable = {
  company_id: string
  id: string
  workspace_id: string
  status: string
  checked: number
  total: number
  verdict: string | null
  bad_seq: number | null
  bad_event_id: string | null
  created_by: string | null
  created_at: Date
  beat_at: Date
  finished_at: Date | null
  is_scheduled: Generated<boolean>
  from_at: Date | null
  to_at: Date | null
  first_seq: number | null
  last_seq: number | null
  checkpoint_size: number | null
  checkpoint_root: Buffer | null
  checkpoint_note: string | null
  checkpoint_vkey: string | null
  checkpoint_signed_at: Date | null
}

export type VerifyScheduleTable = {
  workspace_id: string
  due_at: Date
}
