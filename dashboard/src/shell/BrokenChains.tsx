import { useKnownBroken } from '../api/broken-chains.ts'
import { useSession } from '../api/session-context.tsx'
import { AnchorLink } from '../parts/AnchorLink.tsx'
import { LANGUAGE } from '../parts/text/language.ts'
import { WarningBox } from '../parts/message/WarningBox.tsx'

const NAMES_MAX = 3

/** A warning on every page while a chain is known to be broken. */
export function BrokenChains() {
  const { session } = useSession()
  const { workspaceIds } = useKnownBroken()
  const names = session.workspaces.flatMap(({ id, name }) => (workspaceIds.has(id) ? [name] : []))
  if (names.length === 0) return null
  return (
    <WarningBox title={brokenText(names)}>
      Stored events were changed, removed or inserted. Don’t rely on them until you know what
      happened. <AnchorLink to="/app/integrity">Go to Integrity</AnchorLink>
    </WarningBox>
  )
}

function brokenText(names: readonly string[]): string {
  if (names.length === 1) return `The chain of ${names[0]} is broken`
  const more = names.length - NAMES_MAX
  const shown = more > 0 ? [...names.slice(0, NAMES_MAX), `${more} more`] : names
  return `The chains of ${new Intl.ListFormat(LANGUAGE).format(shown)} are broken`
}
