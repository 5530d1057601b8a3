import type { ComponentProps } from 'react'
import { useDeniedReason } from '../../parts/Gate.tsx'
import { DisabledReason } from '../../parts/DisabledReason.tsx'
import { useCapabilities } from './exports.ts'

/** Disables a control for exports and shows the reason, if the role or the plan forbids them. */
export function ExportGate({
  action,
  children,
}: {
  /** What is not allowed, for example "create exports". */
  action: string
  children: ComponentProps<typeof DisabledReason>['children']
}) {
  return <DisabledReason reason={useExportDeniedReason(action)}>{children}</DisabledReason>
}

/** Why exports aren't allowed. Null if they are. */
export function useExportDeniedReason(action: string): string | null {
  const { data: capabilities } = useCapabilities()
  const deniedReason = useDeniedReason('exports.create', action)
  return deniedReason ?? (capabilities?.rowLimit === null ? capabilities.reason : null)
}
