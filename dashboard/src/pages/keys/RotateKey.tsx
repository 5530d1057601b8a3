import { Button, Group, Slider, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useId, useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { SecretDialog } from '../../parts/dialog/SecretDialog.tsx'
import { formatLocal } from '../../parts/time/time.ts'
import { type Key, refreshKeys } from './keys.ts'
import { NewKeyBox } from './NewKeyBox.tsx'

const GRACE_HOURS_MAX = 24
const HOUR_MS = 3_600_000
const MARKS = [0, 6, 12, 18, 24].map((value) => ({
  value,
  label: `${value} h`,
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
    <SecretDialog isOpen={isOpen} onClose={onClose} title={`Rotate key ${apiKey?.name ?? ''}`}>
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
    const advice = replacementText(apiKey, graceHours, rotate.submittedAt)
    return <NewKeyBox made={rotate.data} advice={advice} onDone={onClose} />
  }
  return (
    <Stack>
      <Text size="sm">
        This creates a new key with the same name, scope and permissions. Replace the old key in
        your programs before it stops working.
      </Text>
      <div>
        <Text size="sm" fw={500} id={labelId}>
          Keep the old key working for {graceHours === 1 ? '1 hour' : `${graceHours} hours`}
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
          Rotate key
        </BusyButton>
      </Group>
    </Stack>
  )
}

function consequenceOf({ prefix, status }: Key, graceHours: number, nowMs: number): string {
  if (status === 'EXPIRED') return `The old key (${prefix}…) has expired.`
  if (graceHours === 0) {
    return `The old key (${prefix}…) stops working within two seconds.`
  }
  const endsAt = formatLocal(nowMs + graceHours * HOUR_MS, 'clock')
  return `The old key (${prefix}…) works until ${endsAt}, then expires.`
}

function replacementText(
  { prefix, status, expiresAt }: Key,
  graceHours: number,
  rotatedAtMs: number,
): string {
  const place = `Replace ${prefix}… with this key`
  if (status === 'EXPIRED' || graceHours === 0) return `${place}. The old key no longer works.`
  const graceMs = rotatedAtMs + graceHours * HOUR_MS
  const endsMs = expiresAt === null ? graceMs : Math.min(graceMs, Date.parse(expiresAt))
  return `${place}. The old key works until ${formatLocal(endsMs, 'clock')}.`
}
