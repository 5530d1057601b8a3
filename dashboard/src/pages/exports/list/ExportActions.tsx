import { ActionIcon, Group, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { useDeniedReason } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { MenuAction } from '../../../parts/MenuAction.tsx'
import { ApiDownload } from '../download/ApiDownload.tsx'
import { DownloadAgain } from '../download/DownloadAgain.tsx'
import { DownloadLink } from '../download/DownloadLink.tsx'
import { useExportDeniedReason } from '../ExportGate.tsx'
import {
  bodyOfJob,
  type Export,
  hasDownload,
  isOpen,
  refreshExports,
  useDownloadKinds,
} from '../exports.ts'
import classes from './ExportActions.module.css'
import type { RowActions } from './row-actions.ts'
import { useRerun } from './use-rerun.ts'

type Dialog = 'cancel' | 'api'

/** The actions for one export: download it while it is open, rerun it after it has ended. */
export function ExportActions({
  job,
  onNew,
  onNotice,
  onDownload,
}: RowActions & {
  job: Export
}) {
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const deniedReason = useExportDeniedReason('create exports')
  const rerun = useRerun(job)
  const cancelDeniedReason = useDeniedReason('exports.create', 'cancel exports')
  // Passed to `mutate`, which calls it only while this component is mounted.
  const say = (again: Export) =>
    onNotice('A new export with the same rows is ready to download', again)
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end" align="flex-start">
      <ErrorBox error={rerun.error} />
      <Downloads job={job} onNotice={onNotice} onDownload={onDownload} />
      <Menu position="bottom-end" width={210}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Actions for export ${job.id.slice(-6)}`}
          >
            <Icon name="more" size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <MenuAction reason={deniedReason} onClick={() => onNew(bodyOfJob(job))}>
            Duplicate export…
          </MenuAction>
          <MenuAction
            reason={deniedReason ?? (isOpen(job) ? 'This export can still be downloaded.' : null)}
            onClick={() => rerun.mutate(undefined, { onSuccess: say })}
          >
            Rerun without downloading
          </MenuAction>
          <Menu.Item onClick={() => setDialog('api')}>Download with the API…</Menu.Item>
          <MenuAction
            reason={cancelDeniedReason ?? (isOpen(job) ? null : 'This export has already ended.')}
            isDanger
            onClick={() => setDialog('cancel')}
          >
            Cancel export…
          </MenuAction>
        </Menu.Dropdown>
      </Menu>
      <ApiDownload job={job} isOpen={dialog === 'api'} onClose={() => setDialog(null)} />
      <Cancel
        job={job}
        isOpen={dialog === 'cancel'}
        onClose={() => setDialog(null)}
        onDone={() => onNotice('Export canceled')}
      />
    </Group>
  )
}

/** The file, and the evidence pack of an export with evidence. */
function Downloads({ job, ...actions }: RowDownloads) {
  const kinds = useDownloadKinds(job)
  if (!hasDownload(job) && isOpen(job)) return null
  return (
    <div className={classes.downloads}>
      {kinds.map((kind) =>
        hasDownload(job) ? (
          <DownloadLink key={kind} job={job} kind={kind} onStart={actions.onDownload} />
        ) : (
          <DownloadAgain key={kind} job={job} kind={kind} {...actions} />
        ),
      )}
    </div>
  )
}

type RowDownloads = Pick<RowActions, 'onNotice' | 'onDownload'> & { job: Export }

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
      title="Cancel export"
      consequence={
        job.status === 'RUNNING'
          ? 'Running downloads of this export stop within two seconds, and their files are incomplete. You can rerun the export later with the same rows.'
          : 'This export can no longer be downloaded. You can rerun it later with the same rows.'
      }
      name={null}
      action="Cancel export"
      isBusy={cancel.isPending}
      error={cancel.error}
      onConfirm={() => cancel.mutate()}
    />
  )
}
