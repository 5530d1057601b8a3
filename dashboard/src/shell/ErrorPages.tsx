import { Button, Center, Stack, Text, Title } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { AnchorLink } from '../parts/AnchorLink.tsx'
import { ErrorBox } from '../parts/message/ErrorBox.tsx'

/** For URLs outside the frame, which already has a `main` element. */
export function NotFoundPage() {
  return (
    <main>
      <NotFound />
    </main>
  )
}

export function NotFound() {
  return (
    <Center mih="60vh" p="md">
      <Stack align="center" gap="xs">
        <Title order={1}>Page not found</Title>
        <Text className="soft">The link may be outdated or incomplete.</Text>
        <AnchorLink to="/app/explorer">Go to Explorer</AnchorLink>
      </Stack>
    </Center>
  )
}

export function PageError({ error, reset }: Pick<ErrorComponentProps, 'error' | 'reset'>) {
  return (
    <Center mih="60vh" p="md" component="main">
      <Stack maw={480}>
        <ErrorBox error={error instanceof Error ? error : new Error(String(error))} />
        <Button variant="default" onClick={reset}>
          Try again
        </Button>
      </Stack>
    </Center>
  )
}
