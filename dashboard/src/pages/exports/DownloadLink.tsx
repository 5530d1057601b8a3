import { Button, type ButtonProps } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import { DisabledReason } from '../../parts/DisabledReason.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { useExportDeniedReason } from './ExportGate.tsx'
import { bodyOfJob, downloadPath, type Export, readPreflight } from './exports.ts'

/**
 * A job can be downloaded once. A page that doesn't poll would not show that the download has started.
 */
const DOWNLOAD_STARTED_TEXT =
  'The download has started. To check its status or to rerun it, go to Exports.'

/**
 * A plain link, so that the browser streams the file to disk. Browsers barely report a refused download,
 * so the preflight runs at the same time and explains the refusal.
 */
export function DownloadLink({
  job,
  onStart,
  ...look
}: { job: Export; onStart: () => void } & Pick<ButtonProps, 'size' | 'variant'>) {
  const deniedReason = useExportDeniedReason('download exports')
  const [hasStarted, setStarted] = useState(false)
  const [isExplained, setExplained] = useState(false)
  const check = useMutation({
    mutationFn: () => readPreflight(bodyOfJob(job)),
    onSuccess: ({ fitsDownload, needsRestore }) => {
      setExplained(!fitsDownload || needsRestore)
      setStarted(fitsDownload && !needsRestore)
    },
  })
  const { fitsDownload = true, needsRestore = false } = check.data ?? {}
  return (
    <>
      {deniedReason === null ? (
        <DisabledReason
          reason={hasStarted && job.status === 'PENDING' ? DOWNLOAD_STARTED_TEXT : null}
        >
          <Button
            component="a"
            href={downloadPath(job)}
            download
            size="xs"
            variant="default"
            leftSection={<Icon name="export" size={13} />}
            onClick={() => {
              setStarted(true)
              onStart()
              check.mutate()
            }}
            {...look}
          >
            {job.status === 'RUNNING' ? 'Download again' : 'Download'}
          </Button>
        </DisabledReason>
      ) : (
        <DisabledReason reason={deniedReason}>
          <Button size="xs" variant="default" {...look}>
            Download
          </Button>
        </DisabledReason>
      )}
      <ApiDownload
        job={job}
        isOpen={isExplained}
        isTooLarge={!fitsDownload}
        isRestoring={needsRestore}
        onClose={() => setExplained(false)}
      />
    </>
  )
}
