import type { ComponentProps } from 'react'
import { useRefusal } from '../../parts/Gate.tsx'
import { Refused } from '../../parts/Refused.tsx'
import { useCapabilities } from './exports.ts'

/** Disables a control for exports and shows the reason, if the role or the plan forbids them. */
export function ExportGate({
  what,
  children,
}: {
  /** What is not allowed, for example "create exports". */
  what: string
  children: ComponentProps<typeof Refused>['children']
}) {
  return <Refused reason={useExportRefusal(what)}>{children}</Refused>
}

/** Why exports aren't allowed. Null if they are. */
export function useExportRefusal(what: string): string | null {
  const { data: capabilities } = useCapabilities()
  const refusal = useRefusal('exports.create', what)
  return refusal ?? (capabilities?.rowLimit === null ? capabilities.reason : null)
}
