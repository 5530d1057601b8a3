import { BrokenChains } from './BrokenChains.tsx'
import { SchemaDrift } from './SchemaDrift.tsx'

/** What every page says at its top while something is wrong. */
export function Warnings() {
  return (
    <>
      <BrokenChains />
      <SchemaDrift />
    </>
  )
}
