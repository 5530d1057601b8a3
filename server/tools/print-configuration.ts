import { OPTIONS } from '../src/config.ts'

const HEADER = ['Variable', 'Default', 'Meaning'] as const

/** docs/configuration.md. The tables are padded as prettier pads them, so both agree on the file. */
export function configurationText(): string {
  const rows = Object.values(OPTIONS).map(({ variable, fallback, meaning }) => [
    `\`${variable}\``,
    fallback === null ? '–' : fallback === '' ? 'empty' : `\`${fallback}\``,
    meaning.replaceAll('|', String.raw`\|`),
  ])
  return `${INTRODUCTION}\n${table([[...HEADER], ...rows])}\n${NOTES}`
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = HEADER.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0), 3),
  )
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |\n`
  const [header = [], ...body] = rows
  const rule = line(widths.map((width) => '-'.repeat(width)))
  return line(header) + rule + body.map(line).join('')
}

const INTRODUCTION = `# Configuration

<!-- Printed from OPTIONS in server/src/config.ts. Change it there, then: npm run generate -->

Annals is configured by environment variables alone; there is no configuration file. To keep them in
a file, let the shell or the process manager read it.

- If a variable that starts with \`ANNALS_\` isn't in the table, the service doesn't start and suggests
  the closest name, because a typo would silently leave the default.
- It doesn't start with an invalid value either. The error lists all problems, and nothing has been
  changed yet.
- Kubernetes injects variables for every Service of the namespace. The service ignores those of a
  Service named \`annals\`, or with a name that starts with \`annals-\`: \`ANNALS_SERVICE_*\`, \`ANNALS_PORT_*\`,
  names such as \`ANNALS_API_SERVICE_HOST\` and \`ANNALS_API_PORT_8080_TCP\`, and every \`ANNALS_*PORT\` whose
  value starts with \`tcp://\`, \`udp://\` or \`sctp://\`. To set \`ANNALS_PORT\` or \`ANNALS_METRICS_PORT\`, list
  it in the pod's \`env\`, which takes precedence.
- \`ANNALS_API_URL\`, \`ANNALS_API_KEY\` and \`ANNALS_WEBHOOK_SECRET\` belong to the
  [command line](command-line.md). The service ignores them.
- Secret values are never printed, neither in the log nor in an error.
`

const NOTES = `The two forms of the secret key exclude each other. With \`ANNALS_DATABASE_URL\` one of them is
required, and every node of a deployment must have the same; make one with \`openssl rand -base64 32\`.
`
