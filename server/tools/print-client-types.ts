import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** The clients whose types follow from a document. `npm run generate` writes both files. */
export const CLIENT_TYPES = [
  // An input with a default is optional for the caller, which the dashboard's forms don't rely on.
  { document: 'v1', file: 'sdk/src/schema.ts', options: ['--default-non-nullable=false'] },
  { document: 'dashboard', file: 'dashboard/src/api/schema.d.ts', options: [] },
] as const

/** The types of a client. Their generator needs an older TypeScript, so it lives apart. */
export function clientTypesText({ document, options }: (typeof CLIENT_TYPES)[number]): string {
  const workspace = createRequire(join(ROOT, 'tools/sdkgen/package.json'))
  const generator = join(
    dirname(workspace.resolve('openapi-typescript/package.json')),
    'bin/cli.js',
  )
  const args = [generator, join(ROOT, `openapi/${document}.json`), ...options]
  // Node's default is 1 MiB, and the types are larger.
  return execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 64 * 1_024 ** 2 })
}
