import { createContext, useContext, useMemo, type ReactNode } from 'react'
import { useLocalStorage } from '@mantine/hooks'
import type { Permission, Session, Workspace } from './session.ts'

type SessionState = {
  session: Session
  /** The selected workspace. Null means all. */
  workspace: Workspace | null
  selectWorkspace: (id: string | null) => void
  hasPermission: (permission: Permission) => boolean
}

const SessionContext = createContext<SessionState | null>(null)

/** Provides the session to all pages that require one. */
export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  const [chosen, choose] = useLocalStorage<string | null>({
    key: `annals.workspace.${session.company.id}`,
    defaultValue: null,
    // Reads the stored choice before the first render, which would otherwise load all workspaces first.
    getInitialValueInEffect: false,
  })
  const state = useMemo<SessionState>(() => {
    const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
    const fallback = customers.length === 1 ? (customers[0] ?? null) : null
    return {
      session,
      workspace: customers.find(({ id }) => id === chosen) ?? fallback,
      selectWorkspace: choose,
      hasPermission: (permission) => session.permissions.includes(permission),
    }
  }, [session, chosen, choose])
  return <SessionContext value={state}>{children}</SessionContext>
}

export function useSession(): SessionState {
  const state = useContext(SessionContext)
  if (!state) throw new Error('useSession requires a SessionProvider')
  return state
}
