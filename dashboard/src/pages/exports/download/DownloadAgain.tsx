import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { ExportGate } from '../ExportGate.tsx'
import { PACK_TEXT } from './DownloadLink.tsx'
import { type DownloadKind, downloadPath, type Export, useCapabilities } from '../exports.ts'
import type { RowActions } from '../list/row-actions.ts'
import { useDownloadCheck } from './use-download-check.ts'
import { useRerun } from '../list/use-rerun.ts'

/** Reruns an export that has ended, and downloads the new one right away. */
export function DownloadAgain({
  job,
  kind = 'file',
  onNotice,
  onDownload,
}: Pick<RowActions, 'onNotice' | 'onDownload'> & { job: Export; kind?: DownloadKind }) {
  const rerun = useRerun(job)
  const check = useDownloadCheck()
  const { data: capabilities } = useCapabilities()
  const bytesMax = Number(capabilities?.downloadBytesMax ?? Infinity)
  const isTooLarge = Number(job.bytes) > bytesMax
  const download = (again: Export) => {
    if (isTooLarge) return check.refuse({ job: again, isTooLarge, isRestoring: false })
    followDownload(again, kind)
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
          {textOf(job, kind)}
        </BusyButton>
      </ExportGate>
      {check.refusal && <ApiDownload {...check.refusal} isOpen onClose={check.dismiss} />}
    </>
  )
}

function textOf({ status }: Export, kind: DownloadKind): string {
  if (kind === 'pack') return PACK_TEXT
  return status === 'SUCCEEDED' ? 'Download again' : 'Rerun and download'
}

/** A link, as in `DownloadLink`: the browser streams the file to disk. */
function followDownload(job: Export, kind: DownloadKind): void {
  const link = document.createElement('a')
  link.href = downloadPath(job, kind)
  link.download = ''
  link.click()
}
