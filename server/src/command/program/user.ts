import type { Command } from 'commander'
import { type CommandContext, EXAMPLE_ID, examples, readConfig } from './command-context.ts'

/** `annals user …`. */
export function addUserCommands(program: Command, context: CommandContext): void {
  const user = program.command('user').description('manage the members of companies')
  addUserReports(user, context)
  addResets(user, context)
  examples(user, 'annals user show --email ann@acme.example')
}

function addUserReports(user: Command, context: CommandContext): void {
  const list = user
    .command('list')
    .description('list the members of a company, the oldest first')
    .requiredOption('--company <id>', 'id of the company')
    .option('--json', 'print one line of JSON per member')
    .action(async (options: { company: string; json?: true }) => {
      const config = await readConfig(context)
      const { listUsers } = await import('../user/list-users.ts')
      await listUsers(config, options)
    })
  examples(list, `annals user list --company ${EXAMPLE_ID}`)

  const show = user
    .command('show')
    .description('show a member: role, workspaces, second factor, sign-in')
    .requiredOption('--email <email>', 'the login of the member')
    .option('--json', 'print one line of JSON')
    .action(async (options: { email: string; json?: true }) => {
      const config = await readConfig(context)
      const { showUser } = await import('../user/show-user.ts')
      await showUser(config, options)
    })
  examples(show, 'annals user show --email ann@acme.example')
}

function addResets(user: Command, context: CommandContext): void {
  const resetLink = user
    .command('reset-link')
    .description('print a one-time link that sets a new password, valid for one hour')
    .requiredOption('--email <email>', 'the login of the member')
    .action(async (options: { email: string }) => {
      const config = await readConfig(context)
      const { printResetLink } = await import('../user/reset-link.ts')
      await printResetLink(config, options)
    })
  examples(resetLink, 'annals user reset-link --email ann@acme.example')

  const resetFactor = user
    .command('reset-second-factor')
    .description('remove the second factor of a member who lost it, and end their sessions')
    .requiredOption('--email <email>', 'the login of the member')
    .action(async (options: { email: string }) => {
      const config = await readConfig(context)
      const { resetFactorOf } = await import('../user/reset-second-factor.ts')
      await resetFactorOf(config, options)
    })
  examples(resetFactor, 'annals user reset-second-factor --email ann@acme.example')
}
