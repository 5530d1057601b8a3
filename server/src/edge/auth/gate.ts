import { ApiError, type ErrorCode } from '../../errors.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { isInRanges } from '../../tenancy/allowlist.ts'
import { includesPermission, type KeyPermission } from '../../tenancy/key/key-permissions.ts'
import { type Plan, planReaches } from '../../tenancy/plans.ts'
import type { KeyScope, Principal } from '../../tenancy/principal.ts'

/** What a route requires of a valid key. */
export type Gate = {
  scope?: KeyScope
  /** Null if every key can call the route. */
  permission: KeyPermission | null
  allowlist?: true
  plan?: Plan
  /** No key can call the route: members do it in the dashboard. */
  dashboardOnly?: true
}

type GateCheck = {
  name: 'scope' | 'permission' | 'allowlist' | 'plan' | 'dashboard'
  code: ErrorCode
  /** A human-readable reason for refusing, or null if the check passes. */
  refusal: (principal: Principal, address: string, gate: Gate) => string | null
  /** The reason the check passes, for the access check in the dashboard. */
  passMessage: (principal: Principal, address: string, gate: Gate) => string
}

/** In the order of evaluation, which is part of the API contract. */
export const GATE_CHECKS: readonly GateCheck[] = [
  {
    name: 'scope',
    code: 'insufficient_scope',
    refusal: ({ scope }, _address, gate) =>
      gate.scope === undefined || scope === gate.scope
        ? null
        : `This key has ${scope.toLowerCase()} scope. Use a ${gate.scope.toLowerCase()} key for this operation.`,
    passMessage: ({ scope }, _address, gate) =>
      gate.scope === undefined
        ? 'Keys of either scope can call this operation.'
        : `This operation requires a ${scope.toLowerCase()} key, and this is one.`,
  },
  {
    name: 'permission',
    code: 'insufficient_scope',
    refusal: ({ permissionMask }, _address, { permission }) =>
      permission === null || includesPermission(permissionMask, permission)
        ? null
        : missingPermissionMessage(permission),
    passMessage: (_principal, _address, { permission }) =>
      permission === null
        ? 'This operation requires no permission.'
        : `This key has the permission ${permission}.`,
  },
  {
    name: 'allowlist',
    code: 'ip_not_allowed',
    refusal: (principal, address, gate) =>
      !requiresAllowlist(principal, gate) || isInRanges(address, principal.allowlist)
        ? null
        : `The address ${address} is not on the company's IP allowlist. Add it in the dashboard.`,
    passMessage: (principal, address, gate) =>
      requiresAllowlist(principal, gate)
        ? `The address ${address} is on the company's IP allowlist.`
        : 'This operation ignores the IP allowlist.',
  },
  {
    name: 'plan',
    code: 'plan_required',
    refusal: ({ plan }, _address, gate) =>
      gate.plan === undefined || planReaches(plan, gate.plan)
        ? null
        : `This operation requires the ${gate.plan} plan or higher. The company is on the ${plan} plan.`,
    passMessage: ({ plan }, _address, gate) =>
      gate.plan === undefined
        ? 'Every plan includes this operation.'
        : `This operation requires the ${gate.plan} plan or higher. The company is on the ${plan} plan.`,
  },
  {
    name: 'dashboard',
    code: 'dashboard_only',
    refusal: (_principal, _address, { dashboardOnly }) =>
      dashboardOnly === true ? 'Keys can only be created and rotated in the dashboard.' : null,
    passMessage: () => 'Keys can call this operation.',
  },
]

function missingPermissionMessage(permission: KeyPermission): string {
  return `This key doesn't have the permission ${permission}. In the dashboard, create a key that has it.`
}

function requiresAllowlist({ allowlistForAllCalls }: Principal, { allowlist }: Gate): boolean {
  return allowlist === true || allowlistForAllCalls
}

/** Throws the error of the first check that fails. */
export function admit(principal: Principal, address: string, gate: Gate): void {
  for (const { code, refusal } of GATE_CHECKS) {
    const message = refusal(principal, address, gate)
    if (message !== null) throw new ApiError(code, { message })
  }
}

/**
 * The workspace whose content the key can't use: the system workspace, which requires the permission `audit`
 * in addition to that of the operation. Null if the key has it.
 */
export function hiddenWorkspaceOf(principal: Principal): WorkspaceId | null {
  return includesPermission(principal.permissionMask, 'audit') ? null : principal.systemWorkspaceId
}

export function requireAudit(principal: Principal, workspaceId: WorkspaceId | null): void {
  if (workspaceId === null || workspaceId !== hiddenWorkspaceOf(principal)) return
  throw new ApiError('insufficient_scope', { message: missingPermissionMessage('audit') })
}
