import { createContext, useContext, useMemo, type ReactNode } from 'react'
import { useLocalStorage } from '@mantine/hooks'
import type { Permission, Session, Workspace } from '../api/session.ts'

type Signed = {
  session: Session
  /** The selected workspace. Null means all. */
  workspace: Workspace | null
  chooseWorkspace: (id: string | null) => void
  may: (permission: Permission) => boolean
}

const SignedContext = createContext<Signed | null>(null)

/** Provides the session to all pages that require one. */
export function SignedProvider({ session, children }: { session: Session; children: ReactNode }) {
  const [chosen, choose] = useLocalStorage<string | null>({
    key: `annals.workspace.${session.company.id}`,
    defaultValue: null,
    // Reads the stored choice before the first render, which would otherwise load all workspaces first.
    getInitialValueInEffect: false,
  })
  const signed = useMemo<Signed>(() => {
    const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
    const fallback = customers.length === 1 ? (customers[0] ?? null) : null
    return {
      session,
      workspace: customers.find(({ id }) => id === chosen) ?? fallback,
      chooseWorkspace: choose,
      may: (permission) => session.permissions.includes(permission),
    }
  }, [session, chosen, choose])
  return <SignedContext value={signed}>{children}</SignedContext>
}

export function useSigned(): Signed {
  const signed = useContext(SignedContext)
  if (!signed) throw new Error('useSigned requires a SignedProvider')
  return signed
}
