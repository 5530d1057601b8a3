/** Tables come after those that they refer to. */
export function inLoadOrder<T extends { name: string }>(
  tables: readonly T[],
  references: readonly { name: string; refersTo: string }[],
): T[] {
  const ordered: T[] = []
  let waiting = tables
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name))
    const isReady = ({ name }: T) =>
      references.every((reference) => reference.name !== name || !names.has(reference.refersTo))
    const ready = waiting.filter(isReady)
    if (ready.length === 0) throw new Error('two tables refer to each other')
    ordered.push(...ready)
    waiting = waiting.filter((table) => !isReady(table))
  }
  return ordered
}
