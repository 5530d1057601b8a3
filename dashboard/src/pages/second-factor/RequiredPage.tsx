import { Anchor, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { forgetSession, queryClient } from '../../api/query-client.ts'
import { SESSION_KEY } from '../../api/session.ts'
import { useSession } from '../../api/session-context.tsx'
import { AuthLayout } from '../sign-in/AuthLayout.tsx'
import { Enrollment } from './Enrollment.tsx'

/** Replaces every page until the member has the second factor that their company requires. */
export function RequiredPage({ onDone }: { onDone: () => void }) {
  useDocumentTitle('Second factor · Annals')
  const { session } = useSession()
  const signOut = useMutation({
    mutationFn: () => unwrap(client.DELETE('/dashboard/session')),
    onSettled: forgetSession,
  })
  const finish = () => {
    void queryClient.invalidateQueries({ queryKey: SESSION_KEY }).then(onDone)
  }
  return (
    <AuthLayout>
      <Title order={1}>Set up second factor</Title>
      <Text className="soft" size="sm" mb="md">
        {session.company.name} requires a second factor. Set it up to continue as{' '}
        {session.user.email}.
      </Text>
      <Enrollment onDone={finish} />
      <Anchor component="button" type="button" size="sm" mt="md" onClick={() => signOut.mutate()}>
        Sign out
      </Anchor>
    </AuthLayout>
  )
}
