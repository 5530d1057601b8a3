import { Button, Menu, Text, useMantineColorScheme, VisuallyHidden } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client, unwrap } from '../api/client.ts'
import { forgetSession } from '../api/query-client.ts'
import { Icon } from '../parts/Icon.tsx'
import { LOCAL_TIME_ZONE, showUtc, useTimeZone } from '../parts/time/time-zone.ts'
import { COMPANY_NAVIGATION } from './navigation.ts'
import { useSession } from '../api/session-context.tsx'

const THEMES = [
  { value: 'auto', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const

export function UserMenu() {
  const { session, hasPermission } = useSession()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const isUtc = useTimeZone() === 'UTC'
  const signOut = useMutation({
    mutationFn: () => unwrap(client.DELETE('/dashboard/session')),
    onSettled: forgetSession,
  })
  const company = COMPANY_NAVIGATION.filter(({ permission }) => hasPermission(permission))
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <Button
          variant="subtle"
          color="gray"
          size="xs"
          miw={0}
          rightSection={<Icon name="down" size={12} />}
        >
          <Text span size="sm" maw={180} truncate>
            {session.user.email}
          </Text>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {session.company.name} · {session.user.role.toLowerCase()}
        </Menu.Label>
        <Menu.Item component={Link} to="/app/account">
          Account and sessions
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>Theme</Menu.Label>
        {THEMES.map(({ value, label }) => (
          <Menu.Item
            key={value}
            onClick={() => setColorScheme(value)}
            rightSection={colorScheme === value && <Icon name="check" size={14} />}
          >
            {label}
            {colorScheme === value && <VisuallyHidden>, selected</VisuallyHidden>}
          </Menu.Item>
        ))}
        <Menu.Divider />
        {LOCAL_TIME_ZONE !== 'UTC' && (
          <Menu.Item onClick={() => showUtc(!isUtc)}>
            {isUtc ? 'Show times in local time' : 'Show times in UTC'}
          </Menu.Item>
        )}
        <Menu.Divider hiddenFrom="sm" />
        {company.map(({ to, label }) => (
          <Menu.Item component={Link} to={to} key={to} hiddenFrom="sm">
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component="a" href="/docs" target="_blank">
          API reference
        </Menu.Item>
        <Menu.Item onClick={() => signOut.mutate()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
