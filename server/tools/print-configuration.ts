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

- A variable that starts with \`ANNALS_\` and is not in the table stops the start, and a near one is
  proposed: a typing error must not silently leave a default in force.
- A bad value stops the start too. All problems are named at once, and nothing has been touched yet.
- Kubernetes injects variables for every Service of the namespace. Those of a Service named \`annals\`, or
  \`annals-\` and anything, are ignored: \`ANNALS_SERVICE_*\`, \`ANNALS_PORT_*\`, names such as
  \`ANNALS_API_SERVICE_HOST\` and \`ANNALS_API_PORT_8080_TCP\`, and every \`ANNALS_*PORT\` whose value starts
  with \`tcp://\`, \`udp://\` or \`sctp://\`. To set \`ANNALS_PORT\` or \`ANNALS_METRICS_PORT\`, list it in the pod's
  \`env\`, which takes precedence.
- Values that hold a secret are never printed, neither in the log nor in an error.
`

const NOTES = `The two forms of the secret key exclude each other. With \`ANNALS_DATABASE_URL\` one of them is
required, and every node of a deployment must have the same; make one with \`openssl rand -base64 32\`.
`
