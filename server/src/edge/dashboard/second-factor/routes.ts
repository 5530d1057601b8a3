import { listRoutes } from '../../define-route.ts'
import { confirmSecondFactor } from './confirm-second-factor.ts'
import { createRecoveryCodes } from './create-recovery-codes.ts'
import { disableSecondFactor } from './disable-second-factor.ts'
import { getSecondFactor } from './get-second-factor.ts'
import { startSecondFactor } from './start-second-factor.ts'

export const SECOND_FACTOR_ROUTES = listRoutes('Second factor', {
  getSecondFactor,
  startSecondFactor,
  confirmSecondFactor,
  createRecoveryCodes,
  disableSecondFactor,
})
