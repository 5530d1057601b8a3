import { useNavigate } from '@tanstack/react-router'
import { readRecentSearches } from '../../api/recent-searches.ts'
import { useSession } from '../../api/session-context.tsx'
import { ALL_WORKSPACES, type ExplorerSearch, patchSearch } from '../../query/explorer-search.ts'
import { viewPatch } from '../../pages/explorer/view/view-query.ts'
import { useViews } from '../../pages/explorer/view/views.ts'
import { COMPANY_NAVIGATION, MAIN_NAVIGATION } from '../navigation.ts'
import { type Command, readEventId } from './commands.ts'

/** Everything that the member can go to, without what their role can't see. */
export function useCommands(typed: string): Command[] {
  const { session, workspace, hasPermission } = useSession()
  const { data: views = [] } = useViews()
  const navigate = useNavigate()
  const explore = (search: ExplorerSearch) => void navigate({ to: '/app/explorer', search })
  const here = { workspaceId: workspace?.id ?? ALL_WORKSPACES }
  const pages = [...MAIN_NAVIGATION, ...COMPANY_NAVIGATION]
    .filter(({ permission }) => hasPermission(permission))
    .map(({ to, label, icon }): Command => ({
      key: `page ${to}`,
      label,
      group: 'Page',
      icon,
      run: () => void navigate({ to }),
    }))
  const account: Command = {
    key: 'page account',
    label: 'Account and sessions',
    group: 'Page',
    icon: 'people',
    run: () => void navigate({ to: '/app/account' }),
  }
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const all = { id: ALL_WORKSPACES, name: 'All workspaces' }
  const workspaces = (customers.length > 1 ? [all, ...customers] : customers).map(
    ({ id, name }): Command => ({
      key: `workspace ${id}`,
      label: name,
      group: 'Workspace',
      icon: 'company',
      run: () => explore({ workspaceId: id }),
    }),
  )
  const saved = views.map((view): Command => ({
    key: `view ${view.id}`,
    label: view.name,
    group: 'View',
    icon: 'star',
    run: () => explore(patchSearch({}, viewPatch(view))),
  }))
  const recent = readRecentSearches(session.user.id).map((text): Command => ({
    key: `recent ${text}`,
    label: text,
    group: 'Recent search',
    icon: 'clock',
    run: () => explore({ ...here, text }),
  }))
  return [
    ...recent,
    ...pages,
    account,
    ...workspaces,
    ...saved,
    ...typedCommands(typed, here, explore),
  ]
}

/** What the typed text itself can mean. */
function typedCommands(
  typed: string,
  here: ExplorerSearch,
  explore: (search: ExplorerSearch) => void,
): Command[] {
  const text = typed.trim()
  if (text === '') return []
  const event = readEventId(text)
  if (event !== null) {
    // The event can be in any workspace that the member sees.
    const run = () => explore({ workspaceId: ALL_WORKSPACES, event })
    return [{ key: 'event', label: event, group: 'Event', icon: 'braces', isAlways: true, run }]
  }
  return [
    {
      key: 'search',
      label: `Search events for “${text}”`,
      group: 'Explorer',
      icon: 'search',
      isAlways: true,
      run: () => explore({ ...here, text }),
    },
  ]
}
