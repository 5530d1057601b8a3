import { Center, Loader } from '@mantine/core'
import { Outlet } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useState } from 'react'
import { noteSignedIn, useSessionQuery } from '../api/session.ts'
import { whenConnected } from '../api/when-connected.ts'
import { PageError } from './ErrorPages.tsx'
import { Layout } from './Layout.tsx'
import { SessionProvider } from '../api/session-context.tsx'

// Loaded on demand, because signed-in members don't need it.
const SignInPage = lazy(
  whenConnected(async () => ({
    default: (await import('../pages/sign-in/SignInPage.tsx')).SignInPage,
  })),
)

const RequiredPage = lazy(
  whenConnected(async () => ({
    default: (await import('../pages/second-factor/RequiredPage.tsx')).RequiredPage,
  })),
)

/** The frame around every page, or the sign-in page in its place. The URL stays the same. */
export function Shell() {
  const { data: session, error, isPending, refetch } = useSessionQuery()
  const isSignedIn = Boolean(session)
  // Stays until the member has saved their recovery codes, even if the session is read again before that.
  const [isEnrolling, setEnrolling] = useState(false)
  if (session?.needsSecondFactor && !isEnrolling) setEnrolling(true)
  if (session === null && isEnrolling) setEnrolling(false)
  useEffect(() => {
    if (isSignedIn) noteSignedIn(true)
  }, [isSignedIn])
  if (isPending) return <LoadingPage />
  // A failed refetch keeps the session that was read before.
  if (session === undefined) return <PageError error={error} reset={() => void refetch()} />
  if (session === null) {
    return (
      <Suspense fallback={<LoadingPage />}>
        <SignInPage />
      </Suspense>
    )
  }
  return (
    <SessionProvider session={session}>
      {isEnrolling ? (
        <Suspense fallback={<LoadingPage />}>
          <RequiredPage onDone={() => setEnrolling(false)} />
        </Suspense>
      ) : (
        <Layout>
          <Outlet />
        </Layout>
      )}
    </SessionProvider>
  )
}

function LoadingPage() {
  return (
    <Center mih="100vh">
      <Loader size="sm" aria-label="Loading" />
    </Center>
  )
}
