import type { Config } from '../config.ts'
import { ApiError, OperatorError } from '../errors.ts'
import { ALLOWLIST_ENTRIES_MAX, parseCidr } from '../tenancy/allowlist.ts'
import { type CompanyPlan, type CreatedCompany, createCompany } from '../tenancy/create-company.ts'
import { COMPANY_BOUNDS, isPlan, PLANS } from '../tenancy/plans.ts'
import { passwordFault } from '../tenancy/sign-in/password-rules.ts'
import { isMailAddress } from '../tenancy/member/mail-address.ts'
import { type BootstrapPassword, readBootstrapPassword } from './bootstrap-password.ts'
import { openDatabase } from './open-database.ts'
import { printJson, printLines } from './output/print.ts'

export const DEFAULT_ALLOWLIST = ['127.0.0.1/32', '::1/128'] as const

export type BootstrapOptions = {
  json?: true
  company: string
  plan: string
  workspace: string[]
  project: string
  email?: string
  password?: string
  passwordStdin?: true
  allowIp: string[]
}

const NAME_LENGTH_MAX = 200

/** `annals bootstrap`: each call creates a new company. Also works while a service is running. */
export async function bootstrap(config: Config, options: BootstrapOptions): Promise<void> {
  const password = await readBootstrapPassword({
    flag: options.password,
    variable: config.bootstrapPassword,
    stdin: options.passwordStdin ? process.stdin : null,
  })
  const plan = readCompanyPlan(options, password)
  await using database = await openDatabase(config, { mayCreate: true })
  try {
    const tenant = await createCompany(database.db, plan)
    if (options.json) printJson(tenant)
    else printLines(...describeCompany(tenant))
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(error.message, { cause: error })
    throw error
  }
}

function readCompanyPlan(
  options: BootstrapOptions,
  password: BootstrapPassword | null,
): CompanyPlan {
  const problems: string[] = []
  const plan = isPlan(options.plan) ? options.plan : null
  if (!plan) problems.push(`--plan must be one of ${PLANS.join(', ')}. Got "${options.plan}".`)
  const [first = 'Production', ...others] = options.workspace
  const names = [options.company, options.project, first, ...others]
  if (names.some((name) => name.trim() === '' || name.length > NAME_LENGTH_MAX)) {
    problems.push(`Names must have 1 to ${NAME_LENGTH_MAX} characters.`)
  }
  if (new Set([first, ...others]).size !== others.length + 1) {
    problems.push('Each workspace of a company must have a different name.')
  }
  if (others.length + 1 > COMPANY_BOUNDS.workspacesMax) {
    problems.push(`A company can have at most ${COMPANY_BOUNDS.workspacesMax} workspaces.`)
  }
  const allowlist = options.allowIp.length > 0 ? options.allowIp : [...DEFAULT_ALLOWLIST]
  const bad = allowlist.filter((entry) => parseCidr(entry) === null)
  if (bad.length > 0)
    problems.push(`--allow-ip must be an address or CIDR range. Got "${bad.join('", "')}".`)
  if (allowlist.length > ALLOWLIST_ENTRIES_MAX) {
    problems.push(`An allowlist can have at most ${ALLOWLIST_ENTRIES_MAX} entries.`)
  }
  if (options.email !== undefined && !isMailAddress(options.email)) {
    problems.push(`--email must be an email address. Got "${options.email}".`)
  }
  const fault = password && passwordFault(password.text, { email: options.email ?? '' })
  if (password && fault !== null) problems.push(`${password.source} ${fault}.`)
  if (!plan || problems.length > 0) throw new OperatorError(problems.join(' '))
  return {
    company: options.company,
    plan,
    workspaces: [first, ...others],
    project: options.project,
    email: options.email ?? null,
    password: password?.text ?? null,
    allowlist: allowlist.map((entry) => parseCidr(entry) ?? entry),
  }
}

function describeCompany(tenant: CreatedCompany): string[] {
  const { company, user, project, workspace } = tenant
  const keys = tenant.workspaces.flatMap(({ name, id, workspaceKey }) => [
    `  workspace ${name} (${id})`,
    `    key ${workspaceKey}`,
  ])
  return [
    `Company ${company.name} (${company.id}), plan ${company.plan}`,
    `  login ${user.email} / ${user.password}`,
    `  company key ${tenant.companyKey}`,
    ...keys,
    `  project ${project.name} (${project.id}) in ${workspace.name}`,
    'The password and the keys are shown only once.',
  ]
}
