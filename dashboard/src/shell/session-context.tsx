import { createContext, useContext, useMemo, type ReactNode } from 'react'
import { useLocalStorage } from '@mantine/hooks'
import type { Permission, Session, Workspace } from '../api/session.ts'

type Signed = {
  session: Session
  /** The workspace that is looked at; null: all of them. */
  workspace: Workspace | null
  chooseWorkspace: (id: string | null) => void
  may: (permission: Permission) => boolean
}

const SignedContext = createContext<Signed | null>(null)

/** For everything behind the sign-in. */
export function SignedProvider({ session, children }: { session: Session; children: ReactNode }) {
  const [chosen, choose] = useLocalStorage<string | null>({
    key: `annals.workspace.${session.company.id}`,
    defaultValue: null,
    // Read at once: a choice that comes after the first draw would ask for everything first.
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
  if (!signed) throw new Error('this part is shown behind the sign-in only')
  return signed
}
