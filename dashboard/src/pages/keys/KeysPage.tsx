import { Button, Tabs } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { Gate } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { NoAccess } from '../../parts/message/NoAccess.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSession } from '../../api/session-context.tsx'
import { AllowlistPanel } from './allowlist/AllowlistPanel.tsx'
import { CreateKey } from './CreateKey.tsx'
import { AccessCheck } from './allowlist/AccessCheck.tsx'
import { KeyList } from './KeyList.tsx'
import type { Key } from './keys.ts'
import { KEYS_TABS } from './keys-search.ts'
import { RotateKey } from './RotateKey.tsx'

const route = getRouteApi('/shell/app/keys')

/** The API keys, what each may do, and the IP allowlist. */
export function KeysPage() {
  const { hasPermission } = useSession()
  const { tab } = route.useSearch()
  const navigate = route.useNavigate()
  const [isCreating, creating] = useDisclosure(false)
  // The dialog isn't in the row, which can disappear with the old key before the new one is copied.
  const [rotated, setRotated] = useState<Key | null>(null)
  const [isRotating, rotating] = useDisclosure(false)
  if (!hasPermission('keys.read')) {
    return (
      <>
        <PageHeader title="Keys" />
        <NoAccess what="keys" />
      </>
    )
  }
  return (
    <>
      <PageHeader
        title="Keys"
        description="API keys let your programs send and read events. A workspace key sends and reads the events of one workspace. A company key reads all workspaces and manages webhooks. Give each program a key with only the permissions that it needs."
      >
        <Gate permission="keys.manage" action="create keys">
          <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={creating.open}>
            Create key
          </Button>
        </Gate>
      </PageHeader>
      <Tabs
        value={tab ?? 'keys'}
        onChange={(value) => {
          const chosen = KEYS_TABS.find((name) => name === value)
          void navigate({ search: chosen ? { tab: chosen } : {} })
        }}
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab value="keys">Keys</Tabs.Tab>
          <Tabs.Tab value="check">Check access</Tabs.Tab>
          <Tabs.Tab value="allowlist">IP allowlist</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="keys">
          <KeyList
            onCreate={creating.open}
            onRotate={(key) => {
              setRotated(key)
              rotating.open()
            }}
          />
        </Tabs.Panel>
        <Tabs.Panel value="check">
          <AccessCheck />
        </Tabs.Panel>
        <Tabs.Panel value="allowlist">
          <AllowlistPanel />
        </Tabs.Panel>
      </Tabs>
      <CreateKey isOpen={isCreating} onClose={creating.close} />
      <RotateKey apiKey={rotated} isOpen={isRotating} onClose={rotating.close} />
    </>
  )
}
