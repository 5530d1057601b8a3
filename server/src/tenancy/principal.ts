import type { CompanyId, KeyId, WorkspaceId } from '../platform/id.ts'
import type { AddressRanges } from './allowlist.ts'
import type { Plan } from './plans.ts'

export const KEY_SCOPES = ['COMPANY', 'WORKSPACE'] as const
export type KeyScope = (typeof KEY_SCOPES)[number]

/** The authenticated caller, with everything that later checks need. Created from a verified key. */
export type Principal = {
  keyId: KeyId
  companyId: CompanyId
  plan: Plan
  /** From `maskOf`. */
  permissionMask: number
  systemWorkspaceId: WorkspaceId
  allowlist: AddressRanges
  allowlistForAllCalls: boolean
} & ({ scope: 'COMPANY'; workspaceId: null } | { scope: 'WORKSPACE'; workspaceId: WorkspaceId })
