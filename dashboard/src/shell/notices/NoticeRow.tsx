import { Anchor, Badge, Group, Text } from '@mantine/core'
import { useRouter } from '@tanstack/react-router'
import type { MouseEvent } from 'react'
import type { Notice } from '../../api/notices.ts'
import { useSession } from '../../api/session-context.tsx'
import { StatusText, type Tone } from '../../parts/text/StatusText.tsx'
import { TimeText } from '../../parts/time/TimeText.tsx'
import classes from './NoticePanel.module.css'

const SEVERITIES: Record<Notice['severity'], { label: string; tone: Tone }> = {
  CRITICAL: { label: 'Critical', tone: 'bad' },
  WARNING: { label: 'Warning', tone: 'warn' },
  INFO: { label: 'Info', tone: 'neutral' },
}

const LINKS: Record<Notice['kind'], string> = {
  WEBHOOK_FAILING: 'Show webhook',
  WEBHOOK_DISABLED: 'Show webhook',
  CHAIN_BROKEN: 'Go to Integrity',
  VERIFY_FAILED: 'Go to Integrity',
  KEY_EXPIRING: 'Go to Keys',
  KEY_USED_AFTER_REPLACEMENT: 'Go to Keys',
  EXPORT_FAILED: 'Show export',
  EXPORT_EXPIRED: 'Show export',
  LIMIT_NEAR: 'Show what is in use',
}

export function NoticeRow({ notice, onOpen }: { notice: Notice; onOpen: () => void }) {
  const { severity, kind, message, link, workspaceId, createdAt, isRead } = notice
  const { session } = useSession()
  const router = useRouter()
  const workspace = session.workspaces.find(({ id }) => id === workspaceId)
  const { label, tone } = SEVERITIES[severity]
  const open = (event: MouseEvent) => {
    onOpen()
    // With these keys, the browser opens another tab or window.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    void router.navigate({ href: link })
  }
  return (
    <li className={classes.row}>
      <Group gap="xs" justify="space-between">
        <Group gap="xs">
          <Text size="xs" span>
            <StatusText tone={tone}>{label}</StatusText>
          </Text>
          {!isRead && (
            <Badge size="sm" variant="default" tt="none">
              New
            </Badge>
          )}
        </Group>
        <Text size="xs" className="soft" span>
          <TimeText at={createdAt} style="clock" />
        </Text>
      </Group>
      <Text size="sm" fw={isRead ? 400 : 500} className={classes.message}>
        {message}
      </Text>
      <Group gap="xs" justify="space-between">
        <Anchor size="sm" href={link} onClick={open}>
          {LINKS[kind]}
        </Anchor>
        {workspace && (
          <Text size="xs" className="soft" span>
            {workspace.name}
          </Text>
        )}
      </Group>
    </li>
  )
}
