import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Command, CommanderError } from 'commander'
import { createProgram } from '../../src/command-line.ts'
import manifest from '../../../package.json' with { type: 'json' }
import { StopSignals } from '../../src/platform/stop-signals.ts'

/** Every command with its full name, such as `annals company set-plan`. */
function commandsOf(command: Command, above: readonly string[] = []): [string, Command][] {
  const names = [...above, command.name()]
  const below = command.commands.flatMap((child) => commandsOf(child, names))
  return above.length === 0 ? below : [[names.join(' '), command], ...below]
}

/** The program, whose commands only note their names. */
function dryProgram(): { program: Command; called: string[] } {
  const program = createProgram({ env: {}, stopSignals: new StopSignals() })
  const called: string[] = []
  for (const [name, command] of commandsOf(program)) {
    command.exitOverride().configureOutput({ writeErr: () => {} })
    if (command.commands.length === 0) command.action(() => void called.push(name))
  }
  return { program, called }
}

function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => (text += part) })
  command.outputHelp()
  return text
}

const { program } = dryProgram()
const commands = commandsOf(program)

test('every command has a description and examples in its help', () => {
  assert.match(helpOf(program), /\nExamples:\n {2}annals serve\n/)
  assert(commands.length > 20)
  for (const [name, command] of commands) {
    assert.notEqual(command.description(), '', name)
    assert.match(helpOf(command), /\nExamples?:\n {2}\S/, name)
  }
})

for (const [name, command] of commands) {
  test(`the examples of ${name} are valid and call it`, async () => {
    const lines = (helpOf(command).split(/\nExamples?:\n/)[1] ?? '').trimEnd().split('\n')
    for (const line of lines) {
      const args = argumentsOf(line)
      const dry = dryProgram()
      if (args.at(-1) === '--help') continue
      await dry.program.parseAsync(args, { from: 'user' })
      assert(dry.called[0]?.startsWith(name), `${line} calls ${dry.called[0]}`)
    }
  })
}

/** What a line prints and, if it is refused, the code of commander's error. */
async function run(line: string): Promise<{ output: string; errorCode: string | null }> {
  const program = createProgram({ env: {}, stopSignals: new StopSignals() })
  let output = ''
  const write = (part: string) => void (output += part)
  for (const command of [program, ...commandsOf(program).map(([, command]) => command)]) {
    command.exitOverride().configureOutput({ writeOut: write, writeErr: write })
  }
  try {
    await program.parseAsync(argumentsOf(line), { from: 'user' })
    return { output, errorCode: null }
  } catch (error) {
    assert(error instanceof CommanderError)
    return { output, errorCode: error.exitCode === 0 ? null : error.code }
  }
}

test('help prints the same as --help, for a command at any depth', async () => {
  for (const name of ['', ' serve', ' events', ' events send', ' company set-plan', ' help']) {
    const { output, errorCode } = await run(`annals help${name}`)
    assert.equal(errorCode, null, name)
    assert.match(output, new RegExp(`^Usage: annals${name} `), name)
    assert.equal(output, (await run(`annals${name} --help`)).output, name)
  }
})

test('help refuses an unknown command like a call of it', async () => {
  for (const name of ['evnts', 'events sned', 'company show-all']) {
    const refused = await run(`annals help ${name}`)
    assert.equal(refused.errorCode, 'commander.unknownCommand', name)
    assert.deepEqual(refused, await run(`annals ${name}`), name)
  }
  const { output, errorCode } = await run('annals help serve now')
  assert.match(output, /^error: unknown command 'now'\n/)
  assert.equal(errorCode, 'commander.unknownCommand')
})

test('--version prints the version of the package', async () => {
  assert.equal((await run('annals --version')).output, `annals ${manifest.version}\n`)
  assert.match(helpOf(program), /-V, --version +print the version\n/)
})

/** The arguments of `annals` in a line of a shell, without variables before it and redirections after it. */
function argumentsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain)
  const end = words.findIndex((word) => word === '<' || word === '>' || word === '|')
  const call = end === -1 ? words : words.slice(0, end)
  const start = call.indexOf('annals')
  assert(start !== -1, line)
  return call.slice(start + 1).map((word) => word ?? '')
}
