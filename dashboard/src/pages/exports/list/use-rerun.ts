import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { setExpectedRows } from '../form/expected-rows.ts'
import { type Export, refreshExports } from '../exports.ts'

/** Creates a new export with the same rows. */
export function useRerun(job: Export) {
  return useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/exports/{jobId}/rerun', { params: { path: { jobId: job.id } } }),
      ),
    onSuccess: async (again) => {
      if (job.status === 'SUCCEEDED') setExpectedRows(again.id, Number(job.rowsExported))
      await refreshExports()
    },
  })
}
