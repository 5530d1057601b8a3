import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { printEscaped } from './output/print.ts'

/** Generated from the routes by `npm run generate`. A test compares it with what a service serves. */
const DOCUMENT = join(import.meta.dirname, '../../../openapi/v1.json')

/** `annals openapi`. Loading all routes to generate the document takes over a second. */
export async function printOpenapi(): Promise<void> {
  printEscaped(await readFile(DOCUMENT, 'utf8'))
}
