import type { Webhook } from '../../../../../sdk/src/resource/types.ts'
import type { Column } from '../../output/table.ts'
import { findWorkspace } from '../find-workspace.ts'
import type { ClientCommand } from '../run-client.ts'

const COLUMNS: readonly Column<Webhook>[] = [
  { title: 'ID', value: ({ id }) => id, isWhole: true, widthMin: 36 },
  { title: 'STATUS', value: ({ status }) => status, isWhole: true },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'URL', value: ({ url }) => url },
  { title: 'FAILURES', value: ({ failureCount }) => failureCount, isRight: true, rank: 2 },
  {
    title: 'LAST SUCCESS',
    value: ({ lastSuccessAt }) => lastSuccessAt,
    isWhole: true,
    rank: 1,
    widthMin: 24,
  },
]

/** `annals webhooks list` */
export async function printWebhooks(
  { annals, output, signal }: ClientCommand,
  { workspace }: { workspace?: string },
): Promise<void> {
  const workspaceId = await findWorkspace(annals, workspace, signal)
  const webhooks = await annals.webhooks.list(workspaceId, { signal })
  if (webhooks.length > 0) await output.rows(COLUMNS)(webhooks)
  else if (!output.isJson) output.note('This workspace has no webhooks.')
}
