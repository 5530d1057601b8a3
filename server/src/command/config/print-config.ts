import { Rows } from '../output/rows.ts'
import { type ConfigValue, configValues } from './config-values.ts'
import { printJson } from '../output/print.ts'

/** `annals config print`: what the service would use if it started now, in this environment. */
export function printConfig(env: NodeJS.ProcessEnv, { json }: { json?: true }): void {
  const values = configValues(env)
  if (json) {
    printJson(values)
    return
  }
  const rows = new Rows<ConfigValue>([
    { title: 'VARIABLE', cell: ({ variable }) => variable },
    { title: 'SOURCE', cell: ({ source }) => source },
    {
      title: 'VALUE',
      cell: ({ value, file }) => (file === null ? value || null : `${value} in ${file}`),
    },
  ])
  rows.print(values)
}
