import { listRoutes } from '../../define-route.ts'
import { cancelVerifyRun } from './cancel-verify-run.ts'
import { getArrivals } from './get-arrivals.ts'
import { getVerifyRun } from './get-verify-run.ts'
import { listBrokenChains } from './list-broken-chains.ts'
import { listChains } from './list-chains.ts'
import { listCheckpoints } from './list-checkpoints.ts'
import { listVerifyRuns } from './list-verify-runs.ts'
import { startVerifyRun } from './start-verify-run.ts'

export const INTEGRITY_ROUTES = listRoutes('Integrity', {
  listChains,
  listBrokenChains,
  startVerifyRun,
  listVerifyRuns,
  getVerifyRun,
  cancelVerifyRun,
  getArrivals,
  listCheckpoints,
})
