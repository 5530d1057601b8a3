import type { Annals } from '../../../../sdk/src/annals.ts'
import { OperatorError } from '../../errors.ts'

/** The workspace that was named, that of the key, or the only one of the company. */
export async function findWorkspace(
  annals: Annals,
  named: string | undefined,
  signal: AbortSignal,
): Promise<string> {
  if (named !== undefined) return named
  const { workspaceId } = await annals.keys.status({ signal })
  if (workspaceId !== null) return workspaceId
  const workspaces = (await annals.workspaces.list({ signal })).filter(({ system }) => !system)
  const [only, ...others] = workspaces
  if (only && others.length === 0) return only.id
  const list = workspaces.map(({ id, name }) => `${id} (${name})`).join(', ')
  throw new OperatorError(
    `This key can use several workspaces. Add --workspace with one of: ${list}`,
  )
}
