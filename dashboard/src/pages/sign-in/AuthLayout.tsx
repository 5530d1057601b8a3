import { Box, Center, Group } from '@mantine/core'
import type { ReactNode } from 'react'

/** The narrow layout of pages before sign-in. */
export function AuthLayout({ children }: { children: ReactNode }) {
  return (
    <Center mih="100vh" p="md" component="main">
      <Box w="100%" maw={360}>
        <Group gap="xs" mb="lg" fw={600}>
          <img src="/assets-static/mark.svg" width="28" height="28" alt="" />
          Annals
        </Group>
        {children}
      </Box>
    </Center>
  )
}
