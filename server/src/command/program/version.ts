import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The project's in a checkout, and the package's own in the npm package. */
const MANIFEST = join(import.meta.dirname, '../../../../package.json')

/** The version of this program. */
export function readVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(MANIFEST, 'utf8'))
  return version
}
