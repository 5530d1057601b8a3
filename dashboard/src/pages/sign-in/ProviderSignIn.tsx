import { Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { useSignInOptions } from './provider.ts'

/** The longest page address that the service keeps during a sign-in. */
const RETURN_LENGTH_MAX = 1_000

/** Leads to the identity provider, if there is one. With a link token, the person accepts the invitation. */
export function ProviderSignIn({ verb, linkToken }: { verb: string; linkToken?: string }) {
  const options = useSignInOptions()
  const start = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/oidc/start', {
          body: linkToken === undefined ? { returnTo: currentPage() } : { linkToken },
        }),
      ),
    onSuccess: ({ url }) => window.location.assign(url),
  })
  const name = options.data?.provider?.name
  if (name === undefined) return null
  return (
    <Stack mt="md" gap="md">
      <Text size="sm" className="soft" ta="center">
        or
      </Text>
      <ErrorBox error={start.error} />
      {/* Stays busy until the browser has left this page. */}
      <Button
        variant="default"
        loading={start.isPending || start.isSuccess}
        onClick={() => start.mutate()}
      >
        {verb} with {name}
      </Button>
    </Stack>
  )
}

function currentPage(): string {
  const { pathname, search } = window.location
  return `${pathname}${search}`.length <= RETURN_LENGTH_MAX ? `${pathname}${search}` : pathname
}
