import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { createProgram } from '../../src/command-line.ts'
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

/** The arguments of `annals` in a line of a shell, without variables before it and redirections after it. */
function argumentsOf(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain)
  const end = words.findIndex((word) => word === '<' || word === '>' || word === '|')
  const call = end === -1 ? words : words.slice(0, end)
  const start = call.indexOf('annals')
  assert(start !== -1, line)
  return call.slice(start + 1).map((word) => word ?? '')
}
