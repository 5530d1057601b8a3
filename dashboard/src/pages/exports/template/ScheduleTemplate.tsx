import { Button, Group, Modal, Radio, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { CADENCE_LABELS, CADENCES } from '../export-text.ts'
import type { Cadence } from '../exports.ts'
import { scheduleTemplate, stopSchedule, type Template } from './templates.ts'

type ScheduleProps = { template: Template; isOpen: boolean; onClose: () => void }

/** Sets how often a template is exported, or stops that. */
export function ScheduleTemplate({ template, isOpen, onClose }: ScheduleProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title={`Schedule ${template.name}`} centered>
      {isOpen && <ScheduleForm template={template} onClose={onClose} />}
    </Modal>
  )
}

function ScheduleForm({ template, onClose }: Omit<ScheduleProps, 'isOpen'>) {
  const { id, schedule } = template
  const [cadence, setCadence] = useState<Cadence>(schedule?.cadence ?? 'DAILY')
  const save = useMutation({
    mutationFn: () => scheduleTemplate(id, cadence),
    onSuccess: onClose,
  })
  const stop = useMutation({ mutationFn: () => stopSchedule(id), onSuccess: onClose })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <Stack>
        <Text size="sm">
          Each file contains the events of a whole period in UTC, hot and archived, and is stored
          for 90 days. It is created 15 minutes after the period ends.
        </Text>
        <Radio.Group
          label="Frequency"
          value={cadence}
          onChange={(text) => setCadence(CADENCES.find((name) => name === text) ?? cadence)}
        >
          <Stack gap={6} mt={4}>
            {CADENCES.map((name) => (
              <Radio
                key={name}
                size="sm"
                value={name}
                label={CADENCE_LABELS[name].label}
                description={CADENCE_LABELS[name].description}
                data-autofocus={name === cadence || undefined}
              />
            ))}
          </Stack>
        </Radio.Group>
        <ErrorBox error={save.error ?? stop.error} />
        <Group justify="space-between" gap="xs">
          {schedule ? (
            <BusyButton
              variant="subtle"
              color="red"
              px="xs"
              isBusy={stop.isPending}
              onClick={() => stop.mutate()}
            >
              Stop schedule
            </BusyButton>
          ) : (
            <span />
          )}
          <Group gap="xs">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <BusyButton
              type="submit"
              disabled={schedule?.cadence === cadence}
              isBusy={save.isPending}
            >
              Save schedule
            </BusyButton>
          </Group>
        </Group>
      </Stack>
    </form>
  )
}
