import type { Command } from 'commander'
import { PLANS } from '../../tenancy/plans.ts'
import type { MapOptions } from '../company/map-group.ts'
import {
  type CommandContext,
  EXAMPLE_ID,
  examples,
  readConfig,
  repeatable,
  suggesting,
} from './command-context.ts'

/** `annals company …`. */
export function addCompanyCommands(program: Command, context: CommandContext): void {
  const company = program.command('company').description('manage companies')
  addCompanyReports(company, context)
  addChanges(company, context)
  addGroupCommands(company, context)
  examples(company, 'annals company list', `annals company show --company ${EXAMPLE_ID}`)
}

function addCompanyReports(company: Command, context: CommandContext): void {
  const list = company
    .command('list')
    .description('list all companies, the oldest first')
    .option('--json', 'print one line of JSON per company')
    .action(async (options: { json?: true }) => {
      const config = await readConfig(context)
      const { listCompanies } = await import('../company/list-companies.ts')
      await listCompanies(config, options)
    })
  examples(list, 'annals company list', 'annals company list --json | head')

  const show = company
    .command('show')
    .description('show a company: its plan, usage, workspaces, keys and webhooks')
    .requiredOption('--company <id>', 'id of the company')
    .option('--json', 'print one line of JSON')
    .action(async (options: { company: string; json?: true }) => {
      const config = await readConfig(context)
      const { showCompany } = await import('../company/show-company.ts')
      await showCompany(config, options)
    })
  examples(show, `annals company show --company ${EXAMPLE_ID}`)
}

function addChanges(company: Command, context: CommandContext): void {
  const setPlan = company
    .command('set-plan')
    .description('change the plan; running nodes apply it within two seconds')
    .requiredOption('--company <id>', 'id of the company')
    .addOption(suggesting('--plan <plan>', 'the new plan', PLANS).makeOptionMandatory())
    .action(async (options: { company: string; plan: string }) => {
      const config = await readConfig(context)
      const { setPlan } = await import('../company/set-plan.ts')
      await setPlan(config, options)
    })
  examples(setPlan, `annals company set-plan --company ${EXAMPLE_ID} --plan ENTERPRISE`)

  const openDashboard = company
    .command('open-dashboard')
    .description('stop applying the allowlist to the dashboard, if members are locked out')
    .requiredOption('--company <id>', 'id of the company')
    .action(async (options: { company: string }) => {
      const config = await readConfig(context)
      const { openDashboardOf } = await import('../company/open-dashboard.ts')
      await openDashboardOf(config, options)
    })
  examples(openDashboard, `annals company open-dashboard --company ${EXAMPLE_ID}`)
}

function addGroupCommands(company: Command, context: CommandContext): void {
  const mapGroup = company
    .command('map-group')
    .description('let a group at the identity provider grant a role at sign-in')
    .requiredOption('--company <id>', 'id of the company')
    .requiredOption('--group <name>', 'name of the group, as the identity provider sends it')
    .requiredOption('--role <role>', 'OWNER, ADMIN, ANALYST or VIEWER')
    .addOption(repeatable('--workspace <id>', 'for ANALYST and VIEWER', 'none'))
    .action(async (options: MapOptions) => {
      const config = await readConfig(context)
      const { mapGroup } = await import('../company/map-group.ts')
      await mapGroup(config, options)
    })
  examples(
    mapGroup,
    `annals company map-group --company ${EXAMPLE_ID} --group audit-admins --role ADMIN`,
  )

  const unmapGroup = company
    .command('unmap-group')
    .description('stop a group from granting a role')
    .requiredOption('--company <id>', 'id of the company')
    .requiredOption('--group <name>', 'name of the group')
    .action(async (options: { company: string; group: string }) => {
      const config = await readConfig(context)
      const { unmapGroup } = await import('../company/map-group.ts')
      await unmapGroup(config, options)
    })
  examples(unmapGroup, `annals company unmap-group --company ${EXAMPLE_ID} --group audit-admins`)

  const listGroups = company
    .command('list-groups')
    .description('print the groups that grant a role, one line of JSON each')
    .requiredOption('--company <id>', 'id of the company')
    .action(async (options: { company: string }) => {
      const config = await readConfig(context)
      const { listGroups } = await import('../company/map-group.ts')
      await listGroups(config, options)
    })
  examples(listGroups, `annals company list-groups --company ${EXAMPLE_ID}`)
}
