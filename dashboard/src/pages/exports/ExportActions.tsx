import { ActionIcon, Group, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { useRefusal } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { MenuChoice } from '../../parts/MenuChoice.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { DownloadLink } from './DownloadLink.tsx'
import { ExportGate, useExportRefusal } from './ExportGate.tsx'
import type { RowActions } from './ExportRow.tsx'
import { bodyOfJob, type Export, isOpen, refreshExports } from './exports.ts'

type Dialog = 'cancel' | 'api'

/** The actions for one export: download it while it is open, rerun it after it has ended. */
export function ExportActions({
  job,
  onNew,
  onSay,
  onDownload,
}: RowActions & {
  job: Export
}) {
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const refusal = useExportRefusal('make exports')
  const cancelRefusal = useRefusal('exports.create', 'cancel exports')
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {isOpen(job) ? (
        <DownloadLink job={job} onBegin={onDownload} />
      ) : (
        <Rerun job={job} onSay={onSay} />
      )}
      <Menu position="bottom-end" width={210}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`More about this export (${job.id.slice(-6)})`}
          >
            <Icon name="more" size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <MenuChoice reason={refusal} onClick={() => onNew(bodyOfJob(job))}>
            New export like this…
          </MenuChoice>
          <Menu.Item onClick={() => setDialog('api')}>Download by the API…</Menu.Item>
          <MenuChoice
            reason={cancelRefusal ?? (isOpen(job) ? null : 'It has come to its end already.')}
            isDanger
            onClick={() => setDialog('cancel')}
          >
            Cancel it…
          </MenuChoice>
        </Menu.Dropdown>
      </Menu>
      <ApiDownload job={job} isOpen={dialog === 'api'} onClose={() => setDialog(null)} />
      <Cancel
        job={job}
        isOpen={dialog === 'cancel'}
        onClose={() => setDialog(null)}
        onDone={() => onSay('The export is canceled.')}
      />
    </Group>
  )
}

function Rerun({ job, onSay }: Pick<RowActions, 'onSay'> & { job: Export }) {
  const rerun = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/exports/{jobId}/rerun', { params: { path: { jobId: job.id } } }),
      ),
    onSuccess: refreshExports,
  })
  // Passed to `mutate`, which calls it only while this component is mounted.
  const say = (again: Export) =>
    onSay('A new export with the same rows is ready to download.', again)
  return (
    <>
      <ErrorBox error={rerun.error} />
      <ExportGate what="rerun exports">
        <BusyButton
          size="xs"
          variant="default"
          isBusy={rerun.isPending}
          onClick={() => rerun.mutate(undefined, { onSuccess: say })}
        >
          Rerun
        </BusyButton>
      </ExportGate>
    </>
  )
}

function Cancel({
  job,
  isOpen: isShown,
  onClose,
  onDone,
}: {
  job: Export
  isOpen: boolean
  onClose: () => void
  onDone: () => void
}) {
  const cancel = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/exports/{jobId}/cancel', { params: { path: { jobId: job.id } } }),
      ),
    onSuccess: async () => {
      await refreshExports()
      onClose()
      onDone()
    },
  })
  return (
    <ConfirmDialog
      isOpen={isShown}
      onClose={onClose}
      title="Cancel this export"
      consequence={
        job.status === 'RUNNING'
          ? 'Downloads that run, whoever began them, are cut within a second or two and their files are not whole. It can be rerun later, with the same rows.'
          : 'Nobody can download it any more. It can be rerun later, with the same rows.'
      }
      name={null}
      action="Cancel the export"
      isBusy={cancel.isPending}
      error={cancel.error}
      onConfirm={() => cancel.mutate()}
    />
  )
}
