import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'

export type Member =
  paths['/dashboard/members']['get']['responses'][200]['content']['application/json']['members'][number]
export type Invitations =
  paths['/dashboard/invitations']['get']['responses'][200]['content']['application/json']
export type Invitation = Invitations['invitations'][number]
export type Role = Member['role']

export const INVITATIONS_KEY = ['invitations'] as const

export const ROLES = [
  { value: 'OWNER', label: 'Owner', description: 'Full access, including other owners.' },
  { value: 'ADMIN', label: 'Admin', description: 'Full access, except to owners.' },
  {
    value: 'ANALYST',
    label: 'Analyst',
    description: 'Can view, export and verify assigned workspaces.',
  },
  { value: 'VIEWER', label: 'Viewer', description: 'Can view assigned workspaces.' },
] as const satisfies readonly { value: Role; label: string; description: string }[]

export function roleLabel(role: Role): string {
  return ROLES.find(({ value }) => value === role)?.label ?? role
}

/** Owners and admins see the whole company. The other roles need a list of workspaces. */
export function needsWorkspaces(role: Role): boolean {
  return role === 'ANALYST' || role === 'VIEWER'
}

export function useMembers() {
  return useQuery({
    queryKey: ['members'],
    queryFn: () => unwrap(client.GET('/dashboard/members')),
  })
}

export function useInvitations() {
  return useQuery({
    queryKey: INVITATIONS_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/invitations')),
  })
}

export async function refreshMembers(): Promise<void> {
  await Promise.all(
    ['members', 'invitations', 'company'].map((first) =>
      queryClient.invalidateQueries({ queryKey: [first] }),
    ),
  )
}
