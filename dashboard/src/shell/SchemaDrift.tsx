import { useEffect } from 'react'
import { queryClient } from '../api/query-client.ts'
import { driftedQueries } from '../api/schema-drift.ts'
import { useMissingTables } from '../parts/use-missing-tables.ts'
import { WarningBox } from '../parts/message/WarningBox.tsx'

/** The lists fill again soon after the upgrade. */
const RETRY_MS = 10_000

/** Explains why lists of the page are empty: the database lacks a table that they need. */
export function SchemaDrift() {
  const tables = useMissingTables()
  useEffect(() => {
    if (tables === '') return undefined
    const timer = setInterval(refetchDrifted, RETRY_MS)
    return () => clearInterval(timer)
  }, [tables])
  if (tables === '') return null
  return (
    <WarningBox color="yellow" title="Some data on this page is missing">
      The database has no table <span className="mono">{tables}</span>, so lists that need it are
      empty. This can happen during an upgrade. If it lasts, tell your operator.
    </WarningBox>
  )
}

function refetchDrifted(): void {
  for (const { query } of driftedQueries(queryClient)) {
    void queryClient.refetchQueries({ queryKey: query.queryKey, exact: true })
  }
}
