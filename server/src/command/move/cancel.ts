import type { Config } from '../../config.ts'
import { cancelMove } from '../../outlet/backup/move/cancel-move.ts'
import { createLogger } from '../../platform/logger.ts'
import { printJson, printLines } from '../output/print.ts'
import { connectTo, type MoveCommandOptions, openSource, openAsOwner } from './move.ts'

/** `annals move --cancel`: makes the source accept writes again. */
export async function cancel(
  config: Config,
  { to, targetIsGone, json }: MoveCommandOptions,
): Promise<void> {
  const logger = createLogger('warn', 'stderr')
  await using stack = new AsyncDisposableStack()
  const address = to === undefined ? null : await connectTo(to)
  const dataSource = stack.use(await openSource(config, logger))
  const source = stack.use(openAsOwner(dataSource.connection, 1, logger))
  const target = address && stack.use(openAsOwner(address, 1, logger))
  const state = await cancelMove({ source, target, isTargetGone: targetIsGone === true })
  if (json) {
    printJson({ canceled: state !== null })
    return
  }
  const text =
    state === null
      ? 'There was no move to cancel.'
      : 'The move was canceled. This database is in use again, and the target can be dropped.'
  printLines(text)
}
