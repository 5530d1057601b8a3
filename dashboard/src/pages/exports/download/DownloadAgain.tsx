import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { ExportGate } from '../ExportGate.tsx'
import { downloadPath, type Export, useCapabilities } from '../exports.ts'
import type { RowActions } from '../list/row-actions.ts'
import { useDownloadCheck } from './use-download-check.ts'
import { useRerun } from '../list/use-rerun.ts'

/** Reruns an export that has ended, and downloads the new one right away. */
export function DownloadAgain({
  job,
  onNotice,
  onDownload,
}: Pick<RowActions, 'onNotice' | 'onDownload'> & { job: Export }) {
  const rerun = useRerun(job)
  const check = useDownloadCheck()
  const { data: capabilities } = useCapabilities()
  const bytesMax = Number(capabilities?.downloadBytesMax ?? Infinity)
  const isTooLarge = Number(job.bytes) > bytesMax
  const download = (again: Export) => {
    if (isTooLarge) return check.refuse({ job: again, isTooLarge, isRestoring: false })
    followDownload(again)
    onDownload()
    check.run(again)
    onNotice('The download of a new export with the same rows has started', again)
  }
  return (
    <>
      <ErrorBox error={rerun.error} />
      <ExportGate action="rerun exports">
        <BusyButton
          size="xs"
          variant="default"
          leftSection={<Icon name="export" size={13} />}
          isBusy={rerun.isPending}
          onClick={() => rerun.mutate(undefined, { onSuccess: download })}
        >
          {job.status === 'SUCCEEDED' ? 'Download again' : 'Rerun and download'}
        </BusyButton>
      </ExportGate>
      {check.refusal && <ApiDownload {...check.refusal} isOpen onClose={check.dismiss} />}
    </>
  )
}

/** A link, as in `DownloadLink`: the browser streams the file to disk. */
function followDownload(job: Export): void {
  const link = document.createElement('a')
  link.href = downloadPath(job)
  link.download = ''
  link.click()
}
