import type { Permission } from '../api/session.ts'
import type { IconName } from '../parts/Icon.tsx'

export type NavigationItem = {
  to: string
  label: string
  icon: IconName
  /** Members without this permission don't see the item, because the page would be empty. */
  permission: Permission
  /** The page shows the workspace that is selected in the picker. */
  isByWorkspace?: true
}

export const MAIN_NAVIGATION: readonly NavigationItem[] = [
  {
    to: '/app/explorer',
    label: 'Explorer',
    icon: 'search',
    permission: 'events.read',
    isByWorkspace: true,
  },
  {
    to: '/app/event-types',
    label: 'Event types',
    icon: 'braces',
    permission: 'events.read',
    isByWorkspace: true,
  },
  {
    to: '/app/exports',
    label: 'Exports',
    icon: 'export',
    permission: 'exports.read',
    isByWorkspace: true,
  },
  {
    to: '/app/webhooks',
    label: 'Webhooks',
    icon: 'webhook',
    permission: 'webhooks.read',
    isByWorkspace: true,
  },
  { to: '/app/keys', label: 'Keys', icon: 'key', permission: 'keys.read', isByWorkspace: true },
  {
    to: '/app/integrity',
    label: 'Integrity',
    icon: 'shield',
    permission: 'integrity.read',
    isByWorkspace: true,
  },
]

export const COMPANY_NAVIGATION: readonly NavigationItem[] = [
  {
    to: '/app/company/workspaces',
    label: 'Workspaces',
    icon: 'company',
    permission: 'company.read',
  },
  { to: '/app/company/members', label: 'Members', icon: 'people', permission: 'members.read' },
  { to: '/app/company/activity', label: 'Activity', icon: 'activity', permission: 'activity.read' },
  {
    to: '/app/company/usage',
    label: 'Plan and usage',
    icon: 'chart',
    permission: 'usage.read',
    isByWorkspace: true,
  },
]
