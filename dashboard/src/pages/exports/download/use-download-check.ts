import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { expectedRowsOf, setExpectedRows } from '../form/expected-rows.ts'
import { bodyOfJob, type Export, readPreflight } from '../exports.ts'

type Refusal = { job: Export; isTooLarge: boolean; isRestoring: boolean }

type DownloadCheck = {
  run: (job: Export) => void
  /** Why the browser can't download the export. Null if it can, and until that is known. */
  refusal: Refusal | null
  refuse: (refusal: Refusal) => void
  dismiss: () => void
}

/**
 * Browsers barely report a refused download, so the preflight runs at the same time and explains the
 * refusal.
 */
export function useDownloadCheck(): DownloadCheck {
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const check = useMutation({
    mutationFn: (job: Export) => readPreflight(bodyOfJob(job)),
    onSuccess: (preflight, job) => {
      const { fitsDownload, needsRestore: isRestoring } = preflight
      setExpectedRows(job.id, expectedRowsOf(preflight))
      if (!fitsDownload || isRestoring) setRefusal({ job, isTooLarge: !fitsDownload, isRestoring })
    },
  })
  return { run: check.mutate, refusal, refuse: setRefusal, dismiss: () => setRefusal(null) }
}
