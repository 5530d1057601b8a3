import { Button, type ButtonProps } from '@mantine/core'
import { useState } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { useExportDeniedReason } from '../ExportGate.tsx'
import { type DownloadKind, downloadPath, type Export, useDownloadKinds } from '../exports.ts'
import { useDownloadCheck } from './use-download-check.ts'

/**
 * A job can be downloaded once. A page that doesn't poll would not show that the download has started.
 */
const DOWNLOAD_STARTED_TEXT =
  'The download has started. To check its status or to rerun it, go to Exports.'

export const PACK_TEXT = 'Download evidence pack'

/** For a dialog: the file is the primary action, with the evidence pack, if any, to its left. */
export function DownloadLinks(props: { job: Export; onStart: () => void }) {
  const kinds = useDownloadKinds(props.job)
  return (
    <>
      {kinds.includes('pack') && <DownloadLink size="sm" kind="pack" {...props} />}
      <DownloadLink size="sm" variant="filled" {...props} />
    </>
  )
}

/** A plain link, so that the browser streams the file to disk. */
export function DownloadLink({
  job,
  kind = 'file',
  onStart,
  ...look
}: { job: Export; kind?: DownloadKind; onStart: () => void } & Pick<
  ButtonProps,
  'size' | 'variant'
>) {
  const deniedReason = useExportDeniedReason('download exports')
  const [hasStarted, setStarted] = useState(false)
  const check = useDownloadCheck()
  const isStarted = hasStarted && check.refusal === null && job.status === 'PENDING'
  return (
    <>
      {deniedReason === null ? (
        <DisabledReason reason={isStarted ? DOWNLOAD_STARTED_TEXT : null}>
          <Button
            component="a"
            href={downloadPath(job, kind)}
            download
            size="xs"
            variant="default"
            leftSection={<Icon name="export" size={13} />}
            onClick={() => {
              setStarted(true)
              onStart()
              check.run(job)
            }}
            {...look}
          >
            {kind === 'pack' ? PACK_TEXT : job.status === 'RUNNING' ? 'Download again' : 'Download'}
          </Button>
        </DisabledReason>
      ) : (
        <DisabledReason reason={deniedReason}>
          <Button size="xs" variant="default" {...look}>
            {kind === 'pack' ? PACK_TEXT : 'Download'}
          </Button>
        </DisabledReason>
      )}
      <ApiDownload
        job={job}
        {...check.refusal}
        isOpen={check.refusal !== null}
        onClose={() => {
          check.dismiss()
          setStarted(false)
        }}
      />
    </>
  )
}
