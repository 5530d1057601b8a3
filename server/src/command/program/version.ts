import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '../../platform/json/parse-json.ts'

/** The project's in a checkout, and the package's own in the npm package. */
const MANIFEST = join(import.meta.dirname, '../../../../package.json')

/** The version of this program. */
export function readVersion(): string {
  const { version }: { version: string } = parseJson(readFileSync(MANIFEST, 'utf8'))
  return version
}
