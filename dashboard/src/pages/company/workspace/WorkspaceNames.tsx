import { useSession } from '../../../api/session-context.tsx'

/** The names of the workspaces that a member sees. Null means the whole company. */
export function WorkspaceNames({ ids }: { ids: readonly string[] | null }) {
  const { session } = useSession()
  if (ids === null) return <>All workspaces</>
  const names = ids.map((id) => session.workspaces.find((one) => one.id === id)?.name ?? id)
  return <>{names.length === 0 ? 'None' : names.join(', ')}</>
}
