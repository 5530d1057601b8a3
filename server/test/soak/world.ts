import assert from 'node:assert/strict'
import type { SoakService } from './soak-service.ts'

export type Company = {
  id: string
  key: string
  login: { email: string; password: string }
  workspaces: Workspace[]
}

export type Workspace = {
  /** Its index among all workspaces of the soak test. */
  index: number
  id: string
  key: string
  companyId: string
  companyKey: string
}

const COMPANIES = [
  { name: 'Acme', workspaces: ['Production', 'Staging', 'Support', 'Archive'] },
  { name: 'Globex', workspaces: ['Production', 'Research'] },
] as const

/** The tenants of the soak test. */
export class World {
  readonly companies: readonly Company[]
  readonly workspaces: readonly Workspace[]
  readonly #indexes: ReadonlyMap<string, number>

  constructor(companies: readonly Company[]) {
    this.companies = companies
    this.workspaces = companies.flatMap((company) => company.workspaces)
    this.#indexes = new Map(this.workspaces.map(({ id, index }) => [id, index]))
  }

  static async create(service: SoakService): Promise<World> {
    const companies: Company[] = []
    for (const { name, workspaces } of COMPANIES) {
      const before = companies.reduce((sum, company) => sum + company.workspaces.length, 0)
      companies.push(await createCompany(service, name, workspaces, before))
    }
    return new World(companies)
  }

  /** -1 for a workspace that doesn't belong to the soak test. */
  indexOf(workspaceId: string): number {
    return this.#indexes.get(workspaceId) ?? -1
  }
}

type Bootstrapped = {
  company: { id: string }
  companyKey: string
  user: { email: string; password: string }
  workspaces: { id: string; workspaceKey: string }[]
}

async function createCompany(
  service: SoakService,
  name: string,
  names: readonly string[],
  firstIndex: number,
): Promise<Company> {
  const args = ['bootstrap', '--json', '--company', name, '--plan', 'ENTERPRISE']
  for (const workspace of names) args.push('--workspace', workspace)
  const { code, stdout, stderr } = await service.run(...args)
  assert.equal(code, 0, stderr)
  const made: Bootstrapped = JSON.parse(stdout)
  const workspaces = made.workspaces.map(({ id, workspaceKey }, nth) => ({
    index: firstIndex + nth,
    id,
    key: workspaceKey,
    companyId: made.company.id,
    companyKey: made.companyKey,
  }))
  return { id: made.company.id, key: made.companyKey, login: made.user, workspaces }
}
