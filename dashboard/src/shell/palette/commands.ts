import type { IconName } from '../../parts/Icon.tsx'

export type Command = {
  /** Unique in the list. */
  key: string
  label: string
  /** What the label is, for example "Page". */
  group: string
  icon: IconName
  /** Offered whatever the member types, because it is made from the typed text. */
  isAlways?: true
  run: () => void
}

const SHOWN_MAX = 50

/** The commands whose label contains every typed word. Those that start with the text come first. */
export function filterCommands(commands: readonly Command[], typed: string): Command[] {
  const text = typed.trim().toLowerCase()
  const words = text.split(/\s+/).filter((word) => word !== '')
  const found = commands.filter(({ label, isAlways }) => {
    const folded = label.toLowerCase()
    return isAlways || words.every((word) => folded.includes(word))
  })
  const rank = ({ label, isAlways }: Command) =>
    isAlways ? 2 : label.toLowerCase().startsWith(text) ? 0 : 1
  return found.toSorted((a, b) => rank(a) - rank(b)).slice(0, SHOWN_MAX)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The id of an event, if the text is one. */
export function readEventId(text: string): string | null {
  const id = text.trim()
  return UUID.test(id) ? id.toLowerCase() : null
}
