import type { ComponentProps } from 'react'
import { useRefusal } from '../../parts/Gate.tsx'
import { Refused } from '../../parts/Refused.tsx'
import { useCapabilities } from './exports.ts'

/** What makes or sends rows: disabled with the reason where the role or the plan has none of it. */
export function ExportGate({
  what,
  children,
}: {
  /** "make exports": what is not allowed. */
  what: string
  children: ComponentProps<typeof Refused>['children']
}) {
  return <Refused reason={useExportRefusal(what)}>{children}</Refused>
}

/** Null for whoever may. */
export function useExportRefusal(what: string): string | null {
  const { data: capabilities } = useCapabilities()
  const refusal = useRefusal('exports.create', what)
  return refusal ?? (capabilities?.rowLimit === null ? capabilities.reason : null)
}
