import { Skeleton, Stack, Switch, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { patchQuery, useOptimisticMutation } from '../../../parts/use-optimistic-mutation.ts'

type MailSettings =
  paths['/dashboard/notices/mail']['get']['responses'][200]['content']['application/json']
type Kind = MailSettings['kinds'][number]

const SETTINGS_KEY = ['notice-mail'] as const

const LABELS: Record<Kind, string> = {
  WEBHOOK_FAILING: 'A webhook is failing',
  WEBHOOK_DISABLED: 'A webhook was disabled',
  CHAIN_BROKEN: 'A chain is broken',
  VERIFY_FAILED: 'A verification could not be finished',
  KEY_EXPIRING: 'A key expires in 14 or 3 days',
  KEY_USED_AFTER_REPLACEMENT: 'A replaced key is still used',
  EXPORT_FAILED: 'An export failed',
  EXPORT_EXPIRED: 'An export expired',
  LIMIT_NEAR: 'A limit is 80% used',
}

/** Which notices the member gets by mail. */
export function NoticeMailSection() {
  const settings = useQuery({
    queryKey: SETTINGS_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/notices/mail')),
  })
  const change = useOptimisticMutation({
    send: (off: Kind[]) => unwrap(client.PUT('/dashboard/notices/mail', { body: { off } })),
    patches: (off) => [patchQuery<MailSettings>(SETTINGS_KEY, (data) => ({ ...data, off }))],
    refresh: () => queryClient.invalidateQueries({ queryKey: SETTINGS_KEY }),
  })
  const { isConfigured = false, kinds = [], off = [] } = settings.data ?? {}
  const turn = (kind: Kind, isOn: boolean) => {
    const others = off.filter((name) => name !== kind)
    change.mutate(isOn ? others : [...others, kind])
  }
  return (
    <section aria-labelledby="notice-mail">
      <Title order={2} id="notice-mail" mb="xs">
        Notices by mail
      </Title>
      <ErrorBox error={settings.error ?? change.error} />
      {settings.isPending && <Skeleton height={160} radius="sm" />}
      {settings.data && (
        <Text size="sm" mb="sm">
          {isConfigured
            ? 'The bell always shows all notices.'
            : 'This installation doesn’t send mail yet. Ask its operator to set ANNALS_SMTP_URL. The bell shows all notices.'}
        </Text>
      )}
      <Stack gap="xs">
        {kinds.map((kind) => (
          <Switch
            key={kind}
            label={LABELS[kind]}
            checked={!off.includes(kind)}
            onChange={(event) => turn(kind, event.currentTarget.checked)}
          />
        ))}
      </Stack>
    </section>
  )
}
