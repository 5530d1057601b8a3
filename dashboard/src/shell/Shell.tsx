import { Center, Loader } from '@mantine/core'
import { Outlet } from '@tanstack/react-router'
import { useSessionQuery } from '../api/session.ts'
import { SignInPage } from '../pages/sign-in/SignInPage.tsx'
import { PageFailure } from './Failure.tsx'
import { Frame } from './Frame.tsx'
import { SignedProvider } from './session-context.tsx'

/** The frame around every page, or the sign-in in its place: the address stays what was asked for. */
export function Shell() {
  const { data: session, error, isPending, refetch } = useSessionQuery()
  if (isPending) {
    return (
      <Center mih="100vh">
        <Loader size="sm" aria-label="Loading" />
      </Center>
    )
  }
  if (error) return <PageFailure error={error} reset={() => void refetch()} />
  if (session === null) return <SignInPage />
  return (
    <SignedProvider session={session}>
      <Frame>
        <Outlet />
      </Frame>
    </SignedProvider>
  )
}
