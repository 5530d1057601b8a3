import type { Config } from '../../config.ts'
import { ApiError, OperatorError } from '../../errors.ts'
import { type CompanyId, parseId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { changeAs } from '../../tenancy/caller.ts'
import { lockCompany } from '../../tenancy/company-store.ts'
import {
  deleteGroupMapping,
  GROUP_MAPPINGS_MAX,
  listGroupMappings,
  putGroupMapping,
} from '../../tenancy/identity/group-mapping-store.ts'
import { readGrant } from '../../tenancy/member/member-rules.ts'
import type { MemberGrant } from '../../tenancy/member/member-store.ts'
import { isRole, ROLES } from '../../tenancy/member/user-store.ts'
import { openDatabase } from '../open-database.ts'
import { operatorCaller } from '../operator.ts'
import { printJson, printLines } from '../output/print.ts'

export type MapOptions = {
  company: string
  group: string
  role: string
  workspace: readonly string[]
}

const GROUP_LENGTH_MAX = 200

/** `annals company map-group`: people in the group get the role at their next sign-in. */
export async function mapGroup(config: Config, options: MapOptions): Promise<void> {
  const { group } = options
  if (group === '' || group.length > GROUP_LENGTH_MAX) {
    throw new OperatorError(`--group must have 1 to ${GROUP_LENGTH_MAX} characters.`)
  }
  await using database = await openDatabase(config, { mayCreate: false })
  const { db } = database
  const companyId = await findCompany(db, options.company)
  await changeAs(operatorCaller(companyId), db, async (trx, record) => {
    const { role, workspaceIds } = await grantIn(trx, companyId, options)
    const mapping = { group, role, workspaceIds: workspaceIds && [...workspaceIds] }
    if (!(await putGroupMapping(trx, { companyId, ...mapping, nowMs: clock() }))) {
      throw new OperatorError(
        `A company can have at most ${GROUP_MAPPINGS_MAX} mapped groups. Remove one first.`,
      )
    }
    record({
      action: 'GROUP_MAPPED',
      resource: { type: 'company', id: companyId },
      metadata: mapping,
    })
  })
  printLines(
    `People in the group ${group} get the role ${options.role} in company ${companyId} when they sign in with OpenID Connect.`,
  )
}

/** `annals company unmap-group`: each person who has the role from this group loses it at their next sign-in. */
export async function unmapGroup(
  config: Config,
  { company, group }: { company: string; group: string },
): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const { db } = database
  const companyId = await findCompany(db, company)
  const isDeleted = await changeAs(operatorCaller(companyId), db, async (trx, record) => {
    const known = await listGroupMappings(trx, companyId)
    const mapping = known.find((each) => each.group === group)
    if (!mapping || !(await deleteGroupMapping(trx, { companyId, group }))) return false
    const metadata = { group, role: mapping.role }
    record({ action: 'GROUP_UNMAPPED', resource: { type: 'company', id: companyId }, metadata })
    return true
  })
  if (!isDeleted)
    throw new OperatorError(`The group ${group} is not mapped in company ${companyId}.`)
  printLines(
    `The group ${group} no longer grants a role in company ${companyId}. Members keep theirs until their next sign-in with OpenID Connect.`,
  )
}

/** `annals company list-groups`: one line of JSON per mapped group. */
export async function listGroups(config: Config, { company }: { company: string }): Promise<void> {
  await using database = await openDatabase(config, { mayCreate: false })
  const companyId = await findCompany(database.db, company)
  for (const mapping of await listGroupMappings(database.db, companyId)) {
    printJson(mapping)
  }
}

async function findCompany(db: Queryable, text: string): Promise<CompanyId> {
  const companyId = parseId<'company'>(text)
  if (companyId === null || (await lockCompany(db, companyId)) === null) {
    throw new OperatorError(`There is no company with the id ${text}.`)
  }
  return companyId
}

async function grantIn(
  db: Queryable,
  companyId: CompanyId,
  { role, workspace }: MapOptions,
): Promise<MemberGrant> {
  if (!isRole(role)) {
    throw new OperatorError(`--role must be one of ${ROLES.join(', ')}. Got "${role}".`)
  }
  try {
    return await readGrant(db, companyId, { role, workspaceIds: workspace })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const [detail] = error.details ?? []
    throw new OperatorError(
      detail
        ? `--workspace ${detail.message}.`
        : '--workspace must be the id of a workspace of the company.',
    )
  }
}
