import { Tooltip } from '@mantine/core'
import type { ReactElement } from 'react'
import { Gate } from '../../parts/Gate.tsx'
import { useCapabilities } from './exports.ts'

/** What makes or sends rows: disabled with the reason where the role or the plan has none of it. */
export function ExportGate({
  what,
  children,
}: {
  /** "make exports": what is not allowed. */
  what: string
  children: (isDisabled: boolean) => ReactElement
}) {
  const { data: capabilities } = useCapabilities()
  return (
    <Gate permission="exports.create" what={what}>
      {(isRefused) => {
        if (isRefused || capabilities?.rowLimit !== null) return children(isRefused)
        return (
          <Tooltip label={capabilities.reason} multiline maw={280}>
            <span>{children(true)}</span>
          </Tooltip>
        )
      }}
    </Gate>
  )
}
