import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { SESSION_KEY } from '../../api/session.ts'

export type Company =
  paths['/dashboard/company']['get']['responses'][200]['content']['application/json']
export type Workspaces =
  paths['/dashboard/workspaces']['get']['responses'][200]['content']['application/json']
export type WorkspaceSummary = Workspaces['workspaces'][number]
export type Projects =
  paths['/dashboard/workspaces/{workspaceId}/projects']['get']['responses'][200]['content']['application/json']
export type Project = Projects['projects'][number]

export const COMPANY_KEY = ['company'] as const
export const WORKSPACES_KEY = ['workspaces'] as const

export function useCompany() {
  return useQuery({
    queryKey: COMPANY_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/company')),
  })
}

export function useWorkspaces() {
  return useQuery({
    queryKey: WORKSPACES_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/workspaces')),
  })
}

/** Includes the session, from which the shell reads the names of the workspaces. */
export async function refreshCompany(): Promise<void> {
  await Promise.all(
    [COMPANY_KEY, WORKSPACES_KEY, ['projects'], SESSION_KEY].map((queryKey) =>
      queryClient.invalidateQueries({ queryKey }),
    ),
  )
}
