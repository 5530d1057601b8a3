import { Alert } from '@mantine/core'
import { problemText, useSignInOptions } from './provider.ts'

/** Says why the sign-in at the identity provider failed. */
export function ProviderProblem({ problem }: { problem: string }) {
  const options = useSignInOptions()
  if (options.isPending) return null
  const name = options.data?.provider?.name ?? 'single sign-on'
  return (
    <Alert color="red" role="alert" my="md" title="You are not signed in">
      {problemText(problem, name)}
    </Alert>
  )
}
