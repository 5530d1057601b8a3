import type { NamedProject } from '../tenancy/workspace/workspace-store.ts'
import type { WorkspaceSummary } from '../tenancy/workspace/workspace-summary-store.ts'

export function workspaceRecord(workspace: WorkspaceSummary) {
  return { ...workspace, createdAt: workspace.createdAt.toISOString() }
}

export function projectRecord({ id, name, createdAt }: NamedProject) {
  return { id, name, createdAt: createdAt.toISOString() }
}
