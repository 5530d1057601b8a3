import { Button, Group, Slider, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { SecretDialog } from '../../parts/SecretDialog.tsx'
import { formatLocal } from '../../parts/time.ts'
import { type Key, refreshKeys } from './keys.ts'
import { NewKeyBox } from './NewKeyBox.tsx'

const GRACE_HOURS_MAX = 24
const HOUR_MS = 3_600_000
const MARKS = [0, 6, 12, 18, 24].map((value) => ({
  value,
  label: value === 0 ? 'None' : `${value} h`,
}))

type RotateProps = {
  /** Null until a key is selected. */
  apiKey: Key | null
  isOpen: boolean
  onClose: () => void
}

/** Replaces a key with a new one, with a grace period for the old one. */
export function RotateKey({ apiKey, isOpen, onClose }: RotateProps) {
  return (
    <SecretDialog isOpen={isOpen} onClose={onClose} title={`Rotate ${apiKey?.name ?? ''}`}>
      {apiKey && <RotateForm apiKey={apiKey} onClose={onClose} />}
    </SecretDialog>
  )
}

function RotateForm({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const [graceHours, setGraceHours] = useState(GRACE_HOURS_MAX)
  const [openedAtMs] = useState(Date.now)
  const labelId = useId()
  const rotate = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/keys/{keyId}/rotate', {
          params: { path: { keyId: apiKey.id } },
          body: { graceHours },
        }),
      ),
    onSuccess: refreshKeys,
  })
  if (rotate.data) {
    const words = successionText(apiKey, graceHours, rotate.submittedAt)
    return <NewKeyBox made={rotate.data} advice={words} onDone={onClose} />
  }
  return (
    <Stack>
      <Text size="sm">
        You get a new key of the same name and scope, which works at once. Put it where the old one
        is, then the old one may end.
      </Text>
      <div>
        <Text size="sm" fw={500} id={labelId}>
          The old key works on for{' '}
          {graceHours === 1 ? '1 hour' : graceHours === 0 ? 'no time' : `${graceHours} hours`}
        </Text>
        <Slider
          mt={6}
          mb="lg"
          mx={6}
          min={0}
          max={GRACE_HOURS_MAX}
          marks={MARKS}
          value={graceHours}
          onChange={setGraceHours}
          label={(hours) => `${hours} h`}
          thumbProps={{ 'aria-labelledby': labelId }}
          styles={{ markLabel: { color: 'var(--text-soft)' } }}
        />
      </div>
      <Text size="sm" role="status">
        {consequenceOf(apiKey, graceHours, openedAtMs)}
      </Text>
      <ErrorBox error={rotate.error} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <BusyButton onClick={() => rotate.mutate()} isBusy={rotate.isPending}>
          Rotate
        </BusyButton>
      </Group>
    </Stack>
  )
}

function consequenceOf({ prefix, status }: Key, graceHours: number, nowMs: number): string {
  if (status === 'EXPIRED') return `The old key, ${prefix}…, has expired and works no more.`
  if (graceHours === 0) {
    return `The old key, ${prefix}…, ends as soon as you rotate: every call with it is refused within two seconds.`
  }
  const endsAt = formatLocal(nowMs + graceHours * HOUR_MS, 'clock')
  return `The old key, ${prefix}…, works until ${endsAt}, and ends by itself.`
}

function successionText(
  { prefix, status, expiresAt }: Key,
  graceHours: number,
  rotatedAtMs: number,
): string {
  const place = `Put it where ${prefix}… is now`
  if (status === 'EXPIRED' || graceHours === 0) return `${place}; that one works no more.`
  const graceMs = rotatedAtMs + graceHours * HOUR_MS
  const endsMs = expiresAt === null ? graceMs : Math.min(graceMs, Date.parse(expiresAt))
  return `${place}; that one works until ${formatLocal(endsMs, 'clock')}.`
}
