import { Button, type ButtonProps } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import { Refused } from '../../parts/Refused.tsx'
import { ApiDownload } from './ApiDownload.tsx'
import { useExportRefusal } from './ExportGate.tsx'
import { bodyOfJob, downloadPath, type Export, readPreflight } from './exports.ts'

/** A job is downloaded once. Where it is not asked for again, nobody sees that it was. */
const BEGUN = 'The download has begun. How it ended, and Rerun to have it again, is under Exports.'

/**
 * A plain link, so that the browser writes the file to disk as it comes. A browser says little when a
 * download is refused, so what would refuse it is asked for at the same time.
 */
export function DownloadLink({
  job,
  onBegin,
  ...look
}: { job: Export; onBegin: () => void } & Pick<ButtonProps, 'size' | 'variant'>) {
  const refusal = useExportRefusal('download exports')
  const [hasBegun, setBegun] = useState(false)
  const [isExplained, setExplained] = useState(false)
  const check = useMutation({
    mutationFn: () => readPreflight(bodyOfJob(job)),
    onSuccess: ({ fitsDownload, needsRestore }) => {
      setExplained(!fitsDownload || needsRestore)
      setBegun(fitsDownload && !needsRestore)
    },
  })
  const { fitsDownload = true, needsRestore = false } = check.data ?? {}
  return (
    <>
      {refusal === null ? (
        <Refused reason={hasBegun && job.status === 'PENDING' ? BEGUN : null}>
          <Button
            component="a"
            href={downloadPath(job)}
            download
            size="xs"
            variant="default"
            leftSection={<Icon name="export" size={13} />}
            onClick={() => {
              setBegun(true)
              onBegin()
              check.mutate()
            }}
            {...look}
          >
            {job.status === 'RUNNING' ? 'Download again' : 'Download'}
          </Button>
        </Refused>
      ) : (
        <Refused reason={refusal}>
          <Button size="xs" variant="default" {...look}>
            Download
          </Button>
        </Refused>
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
