import { stripTypeScriptTypes } from 'node:module'

/** Imports, and `new URL(…, import.meta.url)` of a thread. */
const REFERENCE = /((?:\bfrom |\bimport |\bimport\(|\bnew URL\()'\.{0,2}[\w./-]*)\.ts'/g

/**
 * The JavaScript of a module. Node runs no TypeScript below `node_modules`. Types become blanks, so lines and
 * columns in a stack trace are those of the source.
 */
export function compileModule(source: string): string {
  return stripTypeScriptTypes(source).replaceAll(REFERENCE, "$1.js'")
}
